"""What was found, as a table for the terminal, as Markdown and as JSON."""

import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys
import time
from statistics import median

from . import losses, slow_reads
from .contenders import BASELINE
from .experiment import ratio_to_baseline

TEXT_WIDTH = 40  # a column with anything wider is text, and aligned on the left

LEGEND = f"Medians; in brackets the speed-up over {BASELINE}, above 1 is faster."
LESS = " Less is better throughout."
RATES = " Of what is counted a second more is better, of all else less."


def environment(bench):
    """All that another person needs to judge the figures."""
    setting = lambda name: bench.connection.execute(  # noqa: E731
        "SELECT current_setting(%s, true)", [name]).fetchone()[0]
    return {
        "server": bench.connection.execute("SELECT version()").fetchone()[0],
        "assertions": setting("debug_assertions"),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory, GB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "shared_buffers": setting("shared_buffers"),
        "huge pages": setting("huge_pages_status") or f"{setting('huge_pages')} (outcome not shown by this version)",
        "max_parallel_maintenance_workers": setting("max_parallel_maintenance_workers"),
        **({"cold samples": slow_reads.in_words(bench.options.latency)} if bench.options.latency else {}),
        "rows": bench.options.rows,
        "rounds": bench.options.rounds,
        "load average at start": bench.load_average,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "source": _revision(),
        "command": shlex.join([bench.options.experiment, *sys.argv[2:]]),
    }


def _processor():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def _revision():
    here = pathlib.Path(__file__).parent
    try:
        git = subprocess.run(["git", "-C", here, "describe", "--always", "--dirty", "--exclude", "*"],
                             capture_output=True, text=True)
    except OSError:
        return "unknown"
    return git.stdout.strip() or "unknown"


def figure(value):
    """Three significant digits, without an exponent."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}" \
        if size >= 1 or size == 0 else f"{value:.3g}"


def cell(result, name):
    samples = result["samples"].get(name)
    if not samples:
        return "–"
    text = figure(median(samples))
    ratio = ratio_to_baseline(result, name)
    if ratio is not None and name != BASELINE:
        text += f" ({ratio:.2f}×)"
    return text + ("*" if name in result["notes"] else "")


def main_rows(bench):
    names = [contender.name for contender in bench.contenders]
    rows = [["", *names]]
    rows += [[f"{result['title']}, {result['unit']}", *(cell(result, name) for name in names)]
             for result in bench.results]
    return rows


def fact_rows(bench):
    names = [contender.name for contender in bench.contenders if contender.name in bench.facts]
    titles = list(dict.fromkeys(title for name in names for title in bench.facts[name]))
    return [["", *names]] + [[title, *(figure(bench.facts[name].get(title, "–")) for name in names)]
                             for title in titles]


def further_tables(bench):
    """(title, rows) of what the experiment gave itself."""
    return [(title, [[figure("–" if value is None else value) for value in row] for row in rows])
            for title, rows in bench.tables]


def notes(bench):
    said = {note for result in bench.results for note in result["notes"].values()}
    rates = any(result["rate"] for result in bench.results)
    legend = [LEGEND + (RATES if rates else LESS)] if any(result["timed"] for result in bench.results) else []
    return [*legend, *(f"* {note}" for note in sorted(said)), *(f"Warning: {warning}" for warning in bench.warnings)]


def text_table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    text = [any(len(row[column]) > TEXT_WIDTH for row in rows[1:]) for column in range(len(widths))]
    text[0] = True
    lines = ["  ".join(entry.ljust(width) if is_text else entry.rjust(width)
                       for entry, width, is_text in zip(row, widths, text)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def markdown_table(rows):
    line = lambda row: "| " + " | ".join(row) + " |"  # noqa: E731
    return "\n".join([line(rows[0]), "|---" + "|---:" * (len(rows[0]) - 1) + "|", *map(line, rows[1:])])


def spread_rows(bench):
    names = [contender.name for contender in bench.contenders]
    rows = [["", *names]]
    for result in bench.results:
        if result["timed"]:
            rows.append([f"{result['title']}, {result['unit']}"] + [
                f"{figure(min(own))} – {figure(max(own))}" if (own := result["samples"].get(name)) else "–"
                for name in names])
    return rows


def as_text(bench, title, about):
    server = about["server"].split(" on ")[0]
    head = (f"{title}: {about['rows']:,} rows, {about['rounds']} rounds, {server}, "
            f"assertions {about['assertions']}, {about['cores']} cores, shared_buffers {about['shared_buffers']}"
            + (f"; in cold samples, {about['cold samples']}" if "cold samples" in about else ""))
    parts = [head, *([text_table(main_rows(bench))] if bench.results else []), "\n".join(notes(bench))]
    parts += [text_table(fact_rows(bench))] if bench.facts else []
    for name, rows in further_tables(bench):
        parts.append(f"{name}:\n{text_table(rows)}")
    return "\n\n".join([part for part in parts if part] + losses.in_words(bench))


def as_markdown(bench, title, about, pictures):
    """`pictures` are draw()'s."""
    parts = [f"# {title}", *([markdown_table(main_rows(bench))] if bench.results else []),
             "\n".join(f"- {note.lstrip('* ')}" for note in notes(bench)),
             *(["## Indexes", markdown_table(fact_rows(bench))] if bench.facts else [])]
    for name, rows in further_tables(bench):
        parts += [f"## {name}", markdown_table(rows)]
    parts += losses.in_words(bench)
    if any(result["timed"] for result in bench.results):
        parts += ["## Spread (smallest – largest of the rounds)", markdown_table(spread_rows(bench))]
    parts += ["## Where", "\n".join(f"- {name}: {value}" for name, value in about.items())]
    if pictures:
        parts += ["## Pictures", *(f"![{name}]({file}.png)" for name, file in pictures)]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(bench, title, about, pictures):
    results = [{**result,
                "median": {name: median(samples) for name, samples in result["samples"].items()},
                f"speedup_over_{BASELINE}": {name: ratio_to_baseline(result, name) for name in result["samples"]}}
               for result in bench.results]
    return json.dumps({"experiment": bench.options.experiment, "title": title, "environment": about,
                       "results": results, "facts": bench.facts, "warnings": bench.warnings,
                       "tables": {name: rows for name, rows in bench.tables}, "charts": bench.charts,
                       "pictures": [{"title": name, "file": file} for name, file in pictures]},
                      indent=1, ensure_ascii=False) + "\n"


def draw(bench, title, folder, name):
    """The run's pictures, as PNG and SVG: the speed-ups, and what the experiment asked for.

    Returns their paths, and (title, name of the file without its ending) of each.
    """
    from plots import result_chart  # matplotlib is slow to load, and only reports need it

    paths = lambda stem: [folder / f"{stem}{suffix}" for suffix in (".png", ".svg")]  # noqa: E731
    others = [contender.name for contender in bench.contenders if contender.name != BASELINE]
    speedups = [(f"{result['title']}", {other: ratio for other in others
                                        if (ratio := ratio_to_baseline(result, other)) is not None})
                for result in bench.results]
    speedups = [row for row in speedups if row[1]]
    written, pictures = [], []
    if speedups:
        pictures.append((f"{title}: speed-up over {BASELINE}", f"{name}_speedup"))
        written += result_chart.draw_speedups(pictures[-1][0], BASELINE, speedups, paths(pictures[-1][1]))
    for number, chart in enumerate(bench.charts, 1):
        pictures.append((chart["title"], f"{name}_{number}"))
        written += result_chart.draw(chart, paths(pictures[-1][1]))
    return written, pictures


def write(bench, title, about, folder, name):
    """NAME.json, NAME.md and pictures in `folder`; returns their paths."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written, pictures = draw(bench, title, folder, name)
    for suffix, text in ((".md", as_markdown(bench, title, about, pictures)),
                         (".json", as_json(bench, title, about, pictures))):
        written.insert(0, folder / (name + suffix))
        written[0].write_text(text, encoding="utf-8")
    return written

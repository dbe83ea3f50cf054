"""The page: the losses, and a section for each run.  Plain HTML, with its style and pictures in it."""

import pathlib
import re
import types
from html import escape

from harness import report
from harness.contenders import BASELINE
from harness.experiment import ratio_to_baseline
from harness.report import figure
from harness.losses import NOISE

from .results import middle, spread

NUMBER = re.compile(r"[<≥≤~+-]?\s?[\d,]*\.?\d+\s?(×|%|s|MB|kB|ms|µs)?\*?|–|")
FOLDED = ("server", "assertions", "cores", "processor", "memory, GB")  # said once where all runs agree


def of(runs, left_out, title, by_folder):
    """The page of these runs; `by_folder`: their titles say in which folder they are."""
    name = lambda run: f"{run.title} ({run.path.parent.name})" if by_folder else run.title  # noqa: E731
    common = {key: runs[0].environment.get(key) for key in FOLDED
              if len({str(run.environment.get(key)) for run in runs}) == 1 and key in runs[0].environment}
    parts = [f"<header><h1>{escape(title)}</h1>{_about(common)}</header>",
             f'<nav id="contents"><h2>Contents</h2>{_contents(runs, name)}</nav>',
             *(f'<p class="warning">Left out: {escape(line)}</p>' for line in left_out),
             f'<section id="losses"><h2>Losses</h2>{_losses(runs, name)}</section>',
             *(_section(run, name(run), common) for run in runs)]
    style = pathlib.Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<style>\n{style}</style>\n</head>\n<body>\n<main>\n" + "\n".join(parts) + "\n</main>\n</body>\n</html>\n")


# ---- tables: cells are HTML, their columns numbers or text ----

def _table(head, bodies, caption, text_columns=(0,)):
    """`bodies` are (heading over all columns, or None; rows).  Scrolls in a box of its own where it is wide."""
    kind = lambda column: ' class="text"' if column in text_columns else ""  # noqa: E731
    line = lambda row: "<tr>" + "".join(  # noqa: E731
        f'<th scope="row"{kind(0)}>{cell}</th>' if column == 0 else f"<td{kind(column)}>{cell}</td>"
        for column, cell in enumerate(row)) + "</tr>"
    heads = "".join(f'<th scope="col"{kind(column)}>{cell}</th>' for column, cell in enumerate(head))
    groups = "".join("<tbody>" + (f'<tr><th class="group" colspan="{len(head)}" scope="rowgroup">{title}</th></tr>'
                                  if title else "") + "".join(map(line, rows)) + "</tbody>" for title, rows in bodies)
    return (f'<div class="box" role="region" tabindex="0" aria-label="{escape(caption)}"><table>'
            f"<thead><tr>{heads}</tr></thead>{groups}</table></div>")


def _plain_table(rows, caption):
    """Of text; columns that are mostly numbers are aligned on the right."""
    text = {0} | {column for column in range(len(rows[0]))
                  if 2 * sum(bool(NUMBER.fullmatch(row[column])) for row in rows[1:]) < len(rows) - 1}
    escaped = [[escape(cell) for cell in row] for row in rows]
    return _table(escaped[0], [(None, escaped[1:])], caption, text)


def _times(ratio):
    kind = "loss" if ratio < NOISE else "gain" if ratio > 2 - NOISE else "same"
    return f'<span class="{kind}">{ratio:.2f}×</span>'


def _measured(result, name, compared=True):
    """The median, the speed-up, and the rounds' smallest and largest."""
    if not result["samples"].get(name):
        return "–"
    ratio = ratio_to_baseline(result, name) if compared and name != BASELINE else None
    ends = spread(result, name)
    return (escape(figure(middle(result, name))) + ("*" if name in result["notes"] else "")
            + (f" ({_times(ratio)})" if ratio is not None else "")
            + (f"<small>{figure(ends[0])} – {figure(ends[1])}</small>" if ends else ""))


# ---- over all runs ----

def _link(run, name):
    return f'<a href="#{escape(run.id)}">{escape(name(run))}</a>'


def _contents(runs, name):
    rows = []
    for run in runs:
        count = lambda number: f'<span class="loss">{number}</span>' if number else "0"  # noqa: E731
        rows.append([_link(run, name), figure(run.environment.get("rows", "–")), count(len(run.losses())),
                     count(len(run.warnings))])
    return _table(["", "rows", f'<a href="#losses">below {NOISE}×</a>', "warnings"], [(None, rows)], "Contents")


def _losses(runs, name):
    bodies = []
    names = dict.fromkeys(run.judged.name for run in runs if run.judged)
    for run in runs:
        rows = [[_figure_title(loss["result"]), _measured(loss["result"], BASELINE),
                 _measured(loss["result"], loss["name"], compared=False), _times(loss["speedup"]),
                 _times(loss["speedup_of_fastest"])] for loss in run.losses()]
        if rows:
            bodies.append((_link(run, name), rows))
    if not bodies:
        return f"<p>No figure of these runs is below {NOISE}× of {BASELINE}'s.</p>"
    return (f"<p>All figures below {NOISE}× of {BASELINE}'s, the worst of each run first. Where the fastest rounds have "
            "another speed-up, the machine was not quiet.</p>"
            + _table(["", BASELINE, " or ".join(names), "speed-up", "of the fastest rounds"], bodies, "Losses"))


# ---- one run ----

def _section(run, title, common):
    parts = [f"<h2>{escape(title)}</h2>", f"<p><code>bench/{escape(run.environment['command'])}</code></p>",
             *(f'<p class="warning">Warning: {escape(warning)}</p>' for warning in run.warnings)]
    if run.results:
        names = [contender.name for contender in run.contenders]
        rows = [[_figure_title(result), *(_measured(result, name) for name in names)] for result in run.results]
        parts += [_table(["", *map(escape, names)], [(None, rows)], f"{title}: figures"), _notes(run)]
    parts.append(_pictures(run))
    if run.facts:
        parts += ["<h3>Indexes</h3>", _plain_table(report.fact_rows(run), f"{title}: indexes")]
    for name, rows in run.tables:
        text = [[figure("–" if value is None else value) for value in row] for row in rows]
        parts += [f"<h3>{escape(name)}</h3>", _plain_table(text, f"{title}: {name}")]
    where = {key: value for key, value in run.environment.items() if key not in common and key != "command"}
    parts += ["<h3>Where</h3>", _about(where)]
    return f'<section id="{escape(run.id)}">\n' + "\n".join(part for part in parts if part) + "\n</section>"


def _figure_title(result):
    return f"{escape(result['title'])}, {escape(result['unit'])}"


def _notes(run):
    """The report's, but for warnings, which are above."""
    timed = " The smaller line has the smallest and the largest of the rounds." \
        if any(spread(result, name) for result in run.results for name in result["samples"]) else ""
    lines = [line for line in report.notes(types.SimpleNamespace(results=run.results, warnings=[]))]
    return "".join(f'<p class="note">{escape(line)}{timed if number == 0 else ""}</p>'
                   for number, line in enumerate(lines))


def _pictures(run):
    figures = [f'<figure><img src="{source}" alt="{escape(title)}"></figure>' if source else
               f'<p class="warning">A picture is missing: {escape(title)}</p>' for title, source in run.pictures()]
    return f'<div class="pictures">{"".join(figures)}</div>' if figures else ""


def _about(facts):
    return "<dl>" + "".join(f"<div><dt>{escape(str(name))}</dt><dd>{escape(figure(value))}</dd></div>"
                            for name, value in facts.items()) + "</dl>" if facts else ""

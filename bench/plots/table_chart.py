"""Before and after: a table of doc/benchmarks.md as bars, btree's figures beside served ones."""

import pathlib
import re

from harness.measure import Failed

from . import result_chart

PAGE = pathlib.Path(__file__).resolve().parents[2] / "doc" / "benchmarks.md"
LARGEST = 25  # what takes longer would flatten all other bars


def read(heading):
    """(row, figures of its columns) of the first table under a heading whose columns are btree and served."""
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE.read_text(), re.M | re.S)
    table = section and re.search(r"^\| \| btree \| served \|\n\|[-:|]+\n((?:\|.*\n)+)", section[1], re.M)
    if not table:
        raise Failed(f"{PAGE.name} has no table of btree and served under {heading}")
    for line in table[1].splitlines():
        name, btree, served = (cell.strip() for cell in line.strip("|").split("|"))
        yield name, float(btree.replace(",", "")), float(served.split()[0].replace(",", ""))


def draw(heading, paths):
    rows = [row for row in read(heading) if row[1] <= LARGEST]
    series = {"btree": [(_short(name), btree) for name, btree, _ in rows],
              "served": [(_short(name), served) for name, _, served in rows]}
    chart = {"kind": "bars", "title": f"Before and after: {heading[0].lower()}{heading[1:]}", "x": "", "y": "µs",
             "series": series, "log_x": False, "log_y": False}
    return result_chart.draw(chart, paths)


def _short(name):
    return name.rsplit(", µs", 1)[0].replace(", ", ",\n", 1)

"""The panels of doc/prometheus/dashboard.json, with what a Prometheus server has of the last minutes."""

import json
import pathlib
import re
import time
import urllib.error
import urllib.parse
import urllib.request

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot, ticker  # noqa: E402

from harness.measure import Failed  # noqa: E402

from . import style  # noqa: E402

DASHBOARD = pathlib.Path(__file__).resolve().parents[2] / "doc" / "prometheus" / "dashboard.json"
STEP = 5  # seconds between two points
RATE_INTERVAL = "20s"  # what Grafana would make of $__rate_interval for samples of 5 s
UNITS = {"percentunit": ticker.PercentFormatter(1, decimals=0),
         "bytes": ticker.EngFormatter(unit="B", places=1)}


def draw(url, minutes, paths):
    """One picture of all panels, each where the dashboard has it."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    rows = max(panel["gridPos"]["y"] // panel["gridPos"]["h"] for panel in panels) + 1
    figure, grid = pyplot.subplots(rows, 2, figsize=(11, 2.6 * rows), squeeze=False)
    for panel in panels:
        place = panel["gridPos"]
        _draw_panel(grid[place["y"] // place["h"]][place["x"] // 12], panel, url, minutes)
    return style.save(figure, paths)


def _draw_panel(axes, panel, url, minutes):
    """All series of a panel; those that are always 0 have no place in the legend."""
    lines = [(_legend(target["legendFormat"], series["metric"]), [(float(at), float(value)) for at, value in series["values"]])
             for target in panel["targets"] for series in _ask(url, target["expr"], minutes)]
    start = min((points[0][0] for _, points in lines), default=0)
    for number, (name, points) in enumerate(sorted(lines, key=lambda line: not any(value for _, value in line[1]))):
        axes.plot([(at - start) / 60 for at, _ in points], [value for _, value in points],
                  color=style.OTHERS[number % len(style.OTHERS)], linestyle=style.LINES[number // len(style.OTHERS) % 4],
                  linewidth=1.2, label=name if any(value for _, value in points) else None)
    axes.set_title(panel["title"], fontsize=10)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(UNITS.get(panel["fieldConfig"]["defaults"].get("unit"),
                                             ticker.StrMethodFormatter("{x:,.0f}")))
    axes.set_xlabel("minutes", fontsize=8)
    axes.tick_params(labelsize=8)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", framealpha=0.6)


def _ask(url, expression, minutes):
    """What Prometheus answers to a panel's expression, for all databases."""
    expression = expression.replace("$datname", ".*").replace("$__rate_interval", RATE_INTERVAL)
    now = time.time()
    query = urllib.parse.urlencode({"query": expression, "start": now - 60 * minutes, "end": now, "step": STEP})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query_range?{query}", timeout=30) as answer:
            return json.load(answer)["data"]["result"]
    except (urllib.error.URLError, ValueError) as error:
        raise Failed(f"no answer from Prometheus at {url}: {error}") from None


def _legend(template, labels):
    return re.sub(r"{{(\w+)}}", lambda match: labels.get(match.group(1), ""), template)

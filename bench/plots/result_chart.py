"""Pictures of a run's results: the speed-up of every figure, and the charts that the experiment asked for."""

import textwrap

from matplotlib import patches, pyplot, ticker

from . import style

WIDTH = 8.0  # inches
CHART_HEIGHT = 4.2
BAR_HEIGHT = 0.24
MOST_INSIDE = 5  # series of which the legend has room in the chart
MOST_MARKS = 12
TITLE_WIDTH = 72  # characters, before a title is broken
LOSS_BELOW = 0.995  # what is printed as 1.00 is no loss


def draw_speedups(title, baseline, rows, paths):
    """Bars, one a figure and contender; `rows` are (title of the figure, {contender: speed-up})."""
    names = list(dict.fromkeys(name for _, speedups in rows for name in speedups))
    looks = style.of_series(names)
    bars = len(rows) * len(names)
    figure, axes = pyplot.subplots(figsize=(WIDTH, 1.4 + BAR_HEIGHT * bars + 0.12 * len(rows)))
    thickness = 0.8 / len(names)
    lost = False
    for number, name in enumerate(names):
        color = looks[name][0]
        found = [(row + (number - (len(names) - 1) / 2) * thickness, speedups[name])
                 for row, (_, speedups) in enumerate(rows) if name in speedups]
        losses = [value < LOSS_BELOW for _, value in found]
        lost = lost or any(losses)
        axes.barh([place for place, _ in found], [value for _, value in found], thickness,
                  color=[style.LOSS if loss else color for loss in losses], edgecolor=color,
                  linewidth=1 if len(names) > 1 else 0)
        for place, value in found:
            axes.text(value, place, f" {value:.2f}×", va="center", fontsize=7,
                      bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0})
    axes.set_yticks(range(len(rows)), ["\n".join(_wrapped(row, 44)) for row, _ in rows], fontsize=7)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlim(0, 1.15 * max((value for _, speedups in rows for value in speedups.values()), default=1))
    axes.set_xlabel(f"times as fast as {baseline}")
    axes.set_title("\n".join(_wrapped(title, TITLE_WIDTH)), fontsize=10)
    handles = [patches.Patch(color=looks[name][0], label=name) for name in names]
    if lost:
        handles.append(patches.Patch(color=style.LOSS, label=f"{baseline} is faster"))
    if len(handles) > 1:
        axes.legend(handles=handles)
    return style.save(figure, paths)


def _wrapped(title, width):
    """Lines of a title; a ratio ("1 : 5") stays in one."""
    return textwrap.wrap(title.replace(" : ", "\u00a0:\u00a0"), width)


def draw(chart, paths):
    """One chart of bench.add_chart()."""
    figure, axes = pyplot.subplots(figsize=(WIDTH, CHART_HEIGHT))
    series = chart["series"]
    looks = style.of_series(series)
    if chart["kind"] == "bars":
        _bars(axes, series, looks)
    else:
        for name, points in series.items():
            color, marker, line = looks[name]
            axes.plot([x for x, _ in points], [y for _, y in points], label=name, linewidth=1.6,
                      marker=marker if len(points) <= 40 else None, markersize=5, color=color, linestyle=line)
        if chart["log_x"]:
            axes.set_xscale("log")
            _mark(axes, sorted({x for points in series.values() for x, _ in points}))
    if chart["log_y"]:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.yaxis.set_minor_formatter("{x:,g}" if high < 20 * low else ticker.NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel(chart["x"])
    axes.set_ylabel(chart["y"])
    axes.set_title("\n".join(_wrapped(chart["title"], TITLE_WIDTH)), fontsize=10)
    if len(series) > MOST_INSIDE:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    elif len(series) > 1:
        axes.legend()
    return style.save(figure, paths)


def _mark(axes, values):
    """Show the values themselves on a logarithmic axis, where they are few."""
    if len(values) <= MOST_MARKS:
        axes.set_xticks(values, [f"{value:,g}" for value in values])
        axes.minorticks_off()


def _bars(axes, series, looks):
    """Groups by x, a bar for each series."""
    groups = list(dict.fromkeys(str(x) for points in series.values() for x, _ in points))
    thickness = 0.8 / len(series)
    for number, (name, points) in enumerate(series.items()):
        places = [groups.index(str(x)) + (number - (len(series) - 1) / 2) * thickness for x, _ in points]
        axes.bar(places, [y for _, y in points], thickness, label=name, color=looks[name][0], edgecolor="white",
                 linewidth=0.5)
    crowded = len(groups) > 8 or any(len(group) > 10 for group in groups)
    axes.set_xticks(range(len(groups)), groups, fontsize=7, rotation=30 if crowded else 0,
                    ha="right" if crowded else "center")

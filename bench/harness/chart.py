"""A chart of the speed-ups: one group of bars a measurement, one bar a contender."""

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from .contenders import BASELINE  # noqa: E402
from .experiment import ratio_to_baseline  # noqa: E402


def draw(bench, title, path):
    shown = [result for result in bench.results if result["timed"] and BASELINE in result["samples"]]
    names = [contender.name for contender in bench.contenders]
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.7 * max(len(shown), 1)))
    thickness = 0.8 / len(names)
    for number, name in enumerate(names):
        places = [row + number * thickness for row in range(len(shown))]
        values = [ratio_to_baseline(result, name) or 0 for result in shown]
        bars = axes.barh(places, values, thickness, label=name)
        axes.bar_label(bars, [f"{value:.2f}×" if value else "" for value in values], padding=2, fontsize=7)
    axes.set_yticks([row + 0.4 - thickness / 2 for row in range(len(shown))], [result["title"] for result in shown])
    axes.invert_yaxis()
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xlabel(f"speed-up over {BASELINE}")
    figure.suptitle(f"{title}, {bench.options.rows:,} rows")  # of the figure: names may leave little room for axes
    axes.margins(x=0.12)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path

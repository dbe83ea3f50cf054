"""What all pictures have in common.

The colors are those of Okabe and Ito, which people who are color-blind can tell apart.  Red stands for a loss against
btree, and for nothing else.  Series also differ by their markers, so a picture is readable without colors.
"""

import matplotlib
from matplotlib import pyplot
from PIL import Image

matplotlib.use("Agg")  # files only: no display is needed

BLACK, GREY = "black", "#767676"
BLUE, SKY, GREEN, ORANGE, PURPLE = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#CC79A7"
LOSS = "#D55E00"

GOOD, MOVED, FULL, DESCENDED = BLUE, ORANGE, SKY, BLACK  # what became of a prediction
REASONS = {"fallback_no_model": ("no model", BLACK, "-"), "fallback_block": ("block beyond the file's end", GREY, "--"),
           "fallback_page": ("no leaf any more", PURPLE, "-."), "fallback_low": ("key may lie left", GREEN, ":"),
           "fallback_high": ("key lies right", SKY, "--")}
LOOKUPS, INSERTS = BLUE, ORANGE
CONTENDERS = {"btree": GREY, "served": BLUE, "served-plain": SKY, "hash": PURPLE, "learnedbtree": GREEN,
              "learnedbtree-off": BLACK}
OTHERS = (ORANGE, GREEN, PURPLE, BLACK, SKY, BLUE, GREY)
MARKERS = "osD^vP*X"
LINES = ("-", "--", ":", "-.")
COLORS = 96  # of a PNG; a palette makes it a third as large


def contender_of(name):
    """The contender that a part of a series' name is: "btree, cold" is btree's; None: no contender's."""
    return next((part for part in name.split(", ") if part in CONTENDERS), None)


def of_series(names):
    """{name: (color, marker, line)} for the series of a chart.

    A contender has its color in all charts.  Where a contender has several series, their lines differ.
    """
    taken = {CONTENDERS[own] for name in names if (own := contender_of(name))}
    free = [color for color in OTHERS if color not in taken]
    looks, lines, others = {}, {}, 0
    for number, name in enumerate(names):
        if own := contender_of(name):
            color = CONTENDERS[own]
        else:
            color = free[others % len(free)]
            others += 1
        lines[color] = lines.get(color, -1) + 1
        looks[name] = (color, MARKERS[number % len(MARKERS)], LINES[lines[color] % len(LINES)])
    return looks


def save(figure, paths):
    """PNG and SVG; the same data give the same files."""
    for axes in figure.axes:
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
        if legend := axes.get_legend():
            for text in legend.get_texts():
                text.set_fontsize(8)
    figure.tight_layout()
    pyplot.rcParams["svg.hashsalt"] = "learnedbtree"
    for path in paths:
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
        if path.suffix == ".png":
            with Image.open(path) as picture:
                small = picture.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
            small.save(path, optimize=True)
    pyplot.close(figure)
    return paths

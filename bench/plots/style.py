"""What all pictures have in common."""

import matplotlib
from matplotlib import pyplot
from PIL import Image

matplotlib.use("Agg")  # files only: no display is needed

DATA = "tab:blue"
MODEL = "tab:red"
GOOD = "tab:green"
MOVED = "tab:orange"
REASONS = {"fallback_no_model": "black", "fallback_block": "tab:brown", "fallback_page": "tab:purple",
           "fallback_low": "tab:pink", "fallback_high": "tab:red"}
CONTENDERS = {"btree": "tab:gray", "served": MODEL, "served-plain": MOVED, "hash": "tab:purple", "learnedbtree": DATA,
              "learnedbtree-off": "tab:cyan"}
OTHERS = ("tab:green", "tab:olive", "tab:pink", "tab:brown", "tab:blue", "tab:orange", "tab:purple", "tab:cyan")
MARKERS = "osD^v"  # another one each time that the colors begin anew
COLORS = 96  # of a PNG; a palette makes it a third as large


def of_contender(name, number):
    """The color of a series; one whose name begins with a contender's is that contender's."""
    return CONTENDERS.get(name.split(",")[0], OTHERS[number % len(OTHERS)])


def marker_of(number):
    return MARKERS[number // len(OTHERS) % len(MARKERS)]


def numbered(names):
    """{name: number for its color and marker}; contenders have colors of their own, and take none from the others."""
    others = [name for name in names if name.split(",")[0] not in CONTENDERS]
    return {name: others.index(name) if name in others else 0 for name in names}


def line_of(name):
    """Of several series of one contender ("btree, cold"), only the first is a solid line."""
    return "--" if name.split(",")[0] in CONTENDERS and "," in name else "-"


def save(figure, paths):
    """PNG and SVG; the same data give the same files."""
    for axes in figure.axes:
        axes.grid(alpha=0.3)
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

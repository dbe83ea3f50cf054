"""What all pictures have in common."""

from matplotlib import pyplot
from PIL import Image

DATA = "tab:blue"
MODEL = "tab:red"
GOOD = "tab:green"
MOVED = "tab:orange"
REASONS = {"fallback_no_model": "black", "fallback_block": "tab:brown", "fallback_page": "tab:purple",
           "fallback_low": "tab:pink", "fallback_high": "tab:red"}
COLORS = 96  # of a PNG; a palette makes it a third as large


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

"""The model: leaves by key with the spline's knots, as a whole and where it bends most, and its error at each leaf."""

import matplotlib

matplotlib.use("Agg")

from matplotlib import patches, pyplot, ticker  # noqa: E402

from . import style  # noqa: E402

MAX_MARKERS = 1000  # of knots; more would be a line
SMALL_MARKERS = 200
ZOOM_SHARE = 0.05  # of the leaves


def draw(model, title, paths):
    figure = pyplot.figure(figsize=(9, 7))
    grid = figure.add_gridspec(2, 2, height_ratios=(5, 2), width_ratios=(3, 2))
    measures = model.measures
    figure.suptitle(f"Model of an index: {title}\n{measures['leaves']:,} leaves, {measures['knots']:,} knots, "
                    f"off by at most {measures['max_error']:g} leaves", fontsize=11)
    curve = _Curve(model)
    whole = figure.add_subplot(grid[0, 0])
    curve.draw(whole)
    curve.draw_zoom(figure.add_subplot(grid[0, 1]), whole)
    _draw_errors(figure.add_subplot(grid[1, :]), model)
    return style.save(figure, paths)


class _Curve:
    """Leaves by key, and the spline through them."""

    def __init__(self, model):
        # The first leaf has no smallest key: its code stands for minus infinity, and is left of the picture.
        buckets = model.buckets[1:] or model.buckets
        self.slots = [bucket["first_slot"] for bucket in buckets]
        self.keys, self.name = model.keys([bucket["min_code"] for bucket in buckets])
        self.knot_keys, _ = model.keys([code for code, _ in model.knots])
        self.knot_slots = [slot for _, slot in model.knots]

    def draw(self, axes):
        self._draw_lines(axes, small=len(self.knot_slots) > SMALL_MARKERS)
        margin = (self.keys[-1] - self.keys[0]) / 40
        if margin:
            axes.set_xlim(self.keys[0] - margin, self.keys[-1] + margin)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(self.name)
        axes.set_ylabel("leaf number, in key order")
        axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        axes.legend(loc="upper left")

    def draw_zoom(self, axes, whole):
        """The part with the most knots, with a frame around it in the whole."""
        width = max(10, int(self.slots[-1] * ZOOM_SHARE))
        starts = range(self.slots[0], max(self.slots[0], self.slots[-1] - width) + 1, max(1, width // 8))
        first = max(starts, key=lambda start: sum(start <= slot <= start + width for slot in self.knot_slots))
        inside = [key for key, slot in zip(self.keys, self.slots) if first <= slot <= first + width]
        self._draw_lines(axes, small=False)
        axes.set_title("The framed part, where knots are densest", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(3))
        axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        if len(inside) < 2 or inside[0] == inside[-1]:
            return
        axes.set_xlim(inside[0], inside[-1])
        axes.set_ylim(first, first + width)
        whole.add_patch(patches.Rectangle((inside[0], first), inside[-1] - inside[0], width, fill=False,
                                          edgecolor="black", linewidth=0.8, zorder=5))

    def _draw_lines(self, axes, small):
        axes.plot(self.keys, self.slots, color=style.DATA, linewidth=5, alpha=0.6, solid_capstyle="round",
                  label="first key of each leaf")
        axes.plot(self.knot_keys, self.knot_slots, color=style.MODEL, linewidth=1, label="model: spline and knots",
                  marker="o" if len(self.knot_slots) <= MAX_MARKERS else "", markersize=2 if small else 3.5)


def _draw_errors(axes, model):
    measured = [bucket for bucket in model.buckets if bucket["max_error"] is not None]
    leaves = [bucket["first_slot"] for bucket in measured]
    several = any(bucket["leaves"] > 1 for bucket in model.buckets)
    axes.vlines(leaves, 0, [bucket["max_error"] for bucket in measured], color=style.DATA, linewidth=0.8,
                label="largest error in each group of leaves" if several else "error at each leaf")
    if several:
        axes.plot(leaves, [bucket["mean_error"] for bucket in measured], color=style.MODEL, linewidth=0.8,
                  label="mean error in each group")
    axes.axhline(model.measures["mean_error"], color=style.MODEL, linewidth=1, linestyle="--",
                 label=f"mean error, {model.measures['mean_error']:.2f} leaves")
    axes.set_xlim(0, max(1, model.measures["leaves"]))
    axes.set_ylim(0, max(1, model.measures["max_error"]) * 1.4)
    axes.set_xlabel("leaf number, in key order")
    axes.set_ylabel("error of the model,\nin leaves")
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.legend(loc="upper right", ncols=3)

"""A chart of joins: what nested loops and a hash join take by outer rows, and where the planner switches."""

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

LINES = (":", "--", "-.")


def draw(inner_rows, panels, names, hash_name, paths):
    """`panels`: (title, steps, measured switch by name, planned switch by page costs and name)."""
    figure, rows = pyplot.subplots(len(panels), figsize=(8, 4.5 * len(panels)), squeeze=False)
    for axes, (title, steps, measured, planned) in zip(rows[:, 0], panels):
        sizes = [step["outer_rows"] for step in steps]
        colours = {}
        for name in names:
            colours[name] = axes.plot(sizes, [step["ms"][name] for step in steps], marker=".",
                                      label=f"nested loop, {name}")[0].get_color()
            if measured[name] is not None:
                axes.axvline(measured[name], color=colours[name], linewidth=0.8)
        axes.plot(sizes, [step["ms"][hash_name] for step in steps], marker=".", color="grey", label=hash_name)
        for line, (key, switches) in zip(LINES, planned.items()):
            for name in names:
                if switches[name] is not None:
                    axes.axvline(switches[name], color=colours[name], linewidth=0.8, linestyle=line,
                                 label=f"planner's switch at {key}, {name}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("outer rows")
        axes.set_ylabel("ms")
        axes.set_title(f"Join {title}, inner table of {inner_rows:,} rows")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="lower right")
    figure.tight_layout()
    for path in paths:
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return paths

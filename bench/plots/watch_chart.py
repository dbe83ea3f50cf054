"""Over time: what became of lookups and inserts through the model, how many there were, and when it was trained."""

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot, ticker  # noqa: E402

from harness.measure import Failed  # noqa: E402

from . import style  # noqa: E402


def draw(series, title, paths):
    if not any(interval["lookups"] or interval["inserts"] for interval in series):
        raise Failed("nothing was looked up or inserted through the model while it was watched")
    figure, (hits, misses, inserts, rates) = pyplot.subplots(4, sharex=True, figsize=(9, 8.4))
    figure.suptitle(f"Predictions over time: {title}", fontsize=12)
    _draw_hits(hits, series)
    _draw_misses(misses, series)
    _draw_inserts(inserts, series)
    _draw_rates(rates, series)
    trained = [interval["at"] for interval in series if interval["trainings"]]
    for axes in (hits, misses, inserts, rates):
        for number, at in enumerate(trained):
            axes.axvline(at, color="grey", linewidth=0.8, linestyle=":",
                         label="model trained" if number == 0 and axes is rates else None)
        axes.set_xlim(0, series[-1]["at"])
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="lower left" if axes in (hits, inserts) else "best", ncols=2)
    rates.set_xlabel("seconds since the start")
    return style.save(figure, paths)


def _percent(series, part, whole):
    """Shares of the intervals in which there was anything; elsewhere a gap."""
    return [100 * part(interval) / interval[whole] if interval[whole] else float("nan") for interval in series]


def _at(series):
    return [interval["at"] for interval in series]


def _draw_hits(axes, series):
    axes.stackplot(_at(series),
                   _percent(series, lambda i: i["verified"] - i["moved_right"], "lookups"),
                   _percent(series, lambda i: i["moved_right"], "lookups"),
                   _percent(series, lambda i: i["lookups"] - i["verified"], "lookups"),
                   colors=(style.GOOD, style.MOVED, style.DESCENDED), alpha=0.8,
                   labels=("found on the predicted leaf", "found on a right neighbour", "descended from the root"))
    axes.set_ylim(0, 100)
    axes.set_ylabel("% of lookups")


def _draw_misses(axes, series):
    axes.plot(_at(series), _percent(series, lambda i: i["moved_right"], "lookups"), color=style.MOVED,
              label="found on a right neighbour")
    for reason, (what, color, line) in style.REASONS.items():
        if any(interval[reason] for interval in series):
            axes.plot(_at(series), _percent(series, lambda i, reason=reason: i[reason], "lookups"), color=color,
                      linestyle=line, label=f"descended: {what}")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("% of lookups,\nenlarged")


def _draw_inserts(axes, series):
    axes.stackplot(_at(series),
                   _percent(series, lambda i: i["inserts_placed"] - i["inserts_moved"], "inserts"),
                   _percent(series, lambda i: min(i["inserts_moved"], i["inserts_placed"]), "inserts"),
                   _percent(series, lambda i: i["inserts_full"] + i["inserts_equal"], "inserts"),
                   _percent(series, lambda i: i["inserts_fallback"], "inserts"),
                   colors=(style.GOOD, style.MOVED, style.FULL, style.DESCENDED), alpha=0.8,
                   labels=("put on the predicted leaf", "put on a right neighbour",
                           "left to btree: leaf full, or equal key", "descended from the root"))
    axes.set_ylim(0, 100)
    axes.set_ylabel("% of inserts")


def _draw_rates(axes, series):
    for counter, color, line in (("lookups", style.LOOKUPS, "-"), ("inserts", style.INSERTS, "--")):
        if any(interval[counter] for interval in series):
            rates = [interval[counter] / interval["took"] or float("nan") for interval in series]
            axes.plot(_at(series), rates, color=color, linestyle=line, label=counter)
    axes.set_yscale("log")
    axes.set_ylabel("number a second")
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))

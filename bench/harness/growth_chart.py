"""A chart of a growing table: how well the model predicts, when it was trained, what inserts cost."""

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402


def draw(base_rows, series, target, paths):
    """`series`: {contender: [a dict for each batch]}; `target`: the hit rate to draw a line at."""
    learned = {name: batches for name, batches in series.items() if "hit_rate" in batches[0]}
    figure, panels = pyplot.subplots(4, sharex=True, figsize=(8, 10))
    hits, moves, trainings, times = panels
    for name, batches in series.items():
        inserted = [(batch["rows"] - base_rows) / 1e6 for batch in batches]
        column = lambda key: [batch[key] for batch in batches]  # noqa: E731, B023
        times.plot(inserted, column("insert_us"), marker=".", label=name)
        if name not in learned:
            continue
        hits.plot(inserted, column("hit_rate"), marker=".", label="lookups on the predicted leaf or right of it")
        hits.plot(inserted, column("straight"), linewidth=0.8, label="lookups on the predicted leaf itself")
        hits.plot(inserted, column("placed"), linewidth=0.8, label="inserts placed on it or right of it")
        moves.plot(inserted, column("moved_right"), marker=".", label="lookups that moved right")
        moves.plot(inserted, [100 - rate for rate in column("hit_rate")], marker=".", label="lookups not proven")
        trainings.step(inserted, column("trainings"), where="post", label="trainings")
    hits.axhline(target, color="grey", linewidth=0.8)
    hits.set_ylabel("%")
    moves.set_ylabel("% of lookups")
    trainings.set_ylabel("trainings so far")
    times.set_ylabel("insert, µs a row")
    times.set_xlabel("million rows inserted")
    times.set_ylim(bottom=0)
    hits.set_title(f"Random inserts into a table of {base_rows:,} rows")
    for panel in panels:
        panel.grid(alpha=0.3)
        if panel.lines:
            panel.legend(fontsize=8)
    figure.tight_layout()
    for path in paths:
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return paths

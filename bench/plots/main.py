"""Command line of bench/plot: an index of a running server, or real keys on a scratch server of its own."""

import argparse
import contextlib
import os
import pathlib
import time

import psycopg

from harness.experiment import Bench
from harness.measure import Failed

from . import dashboard, demo, samples, table_chart, watch_chart


def parse():
    parser = argparse.ArgumentParser(
        prog="bench/plot", formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Draw the results of the predictions for a served or learnedbtree index over time.")
    parser.add_argument("index", nargs="?", help="name of the index, with its schema if necessary")
    parser.add_argument("--connection", default="", metavar="STRING",
                        help="libpq connection string or URI; PGHOST and similar variables supply the rest")
    parser.add_argument("--out", default=".", metavar="DIR", help="folder for the PNG and SVG files")
    parser.add_argument("--watch", type=float, default=60, metavar="SECONDS", help="how long to sample learnedbtree_stat")
    parser.add_argument("--every", type=float, default=1, metavar="SECONDS", help="interval between two samples")
    parser.add_argument("--dashboard", metavar="URL", help="draw the panels of doc/prometheus/dashboard.json instead, "
                                                           "from a Prometheus server, over the time of --watch")
    parser.add_argument("--table", metavar="HEADING", help="draw a table of doc/benchmarks.md instead, btree beside served")
    group = parser.add_argument_group("demonstration")
    group.add_argument("--demo", action="store_true", help="load real keys into a scratch server, insert and look up")
    group.add_argument("--sets", default="commit_times,ipv4_starts", help="real key sets, see bench/keys")
    group.add_argument("--keys", default=os.environ.get("LBT_KEYS"), help="folder with their files")
    group.add_argument("--rows", type=int, help="final number of rows (default: as many as the set has keys); "
                                                "half of them are loaded at the start")
    group.add_argument("--pg-config", default=os.environ.get("PG_CONFIG", "pg_config"), help="which server")
    group.add_argument("--scratch", help="folder for the scratch cluster (default: the system's temporary folder)")
    options = parser.parse_args()
    if sum(map(bool, (options.demo, options.index, options.table, options.dashboard))) != 1:
        parser.error("name an index, or give --demo, --dashboard or --table")
    if options.every <= 0 or options.watch <= 0:
        parser.error("--every and --watch must be above 0")
    if options.rows is not None and options.rows < 10_000:
        parser.error("--rows must be at least 10,000")
    return options


def draw(bench, connection, index, title, work=contextlib.nullcontext):
    """The picture of one index, whose names are printed.  `work` gives a context in which it is watched."""
    out = pathlib.Path(bench.options.out)
    out.mkdir(parents=True, exist_ok=True)
    stem = index.replace('"', "").replace("/", "_")
    bench.say(f"watching {index} for {bench.options.watch:g} s")
    with work():
        series = samples.watch(connection, index, bench.options.watch, bench.options.every)
    print(*watch_chart.draw(series, title, [out / f"{stem}_watch.{ending}" for ending in ("png", "svg")]), sep="\n")


def main():
    options = parse()
    bench = Bench(options, [], time.monotonic())
    try:
        with contextlib.ExitStack() as cleanup:
            out = pathlib.Path(options.out)
            if options.dashboard:
                print(*dashboard.draw(options.dashboard, options.watch / 60, [out / "dashboard.png"]), sep="\n")
            elif options.table:
                print(*table_chart.draw(options.table, [out / f"before_after.{ending}" for ending in ("png", "svg")]), sep="\n")
            elif options.demo:
                demo.run(bench, cleanup, draw)
            else:
                connection = cleanup.enter_context(contextlib.closing(
                    psycopg.connect(options.connection, autocommit=True, prepare_threshold=None)))
                draw(bench, connection, options.index, options.index)
    except psycopg.Error as error:
        raise SystemExit(f"bench/plot: {error.diag.message_primary or error}") from None
    except Failed as error:
        raise SystemExit(f"bench/plot: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit("bench/plot: interrupted") from None


if __name__ == "__main__":
    main()

"""Command line of every experiment: common options, the server around it, the report after it."""

import argparse
import contextlib
import importlib
import os
import signal
import sys
import time

import psycopg

from . import contenders as contender_list
from . import report, slow_reads
from .experiment import Bench
from .measure import Failed
from .server import Installation, ScratchServer

MEMORY_SHARE = 0.7  # of the machine's memory, at most, for shared_buffers
SPARE_BUFFERS = 256 * 2**20  # bytes: catalogs, free lists
MAX_SORT_MEMORY = 2**30  # bytes, for index builds


def parse(arguments):
    if not arguments:
        raise SystemExit("usage: launch EXPERIMENT [options]")
    name, *rest = arguments
    experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT()
    parser = argparse.ArgumentParser(prog=f"bench/{name}", description=experiment.title,
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.set_defaults(experiment=name)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds, after one that only warms up")
    parser.add_argument("--contenders", default=",".join(known.name for known in contender_list.KNOWN),
                        help="comma-separated")
    parser.add_argument("--pg-config", default=os.environ.get("PG_CONFIG", "pg_config"),
                        help="which server to measure")
    parser.add_argument("--out", help="folder for JSON and Markdown")
    parser.add_argument("--scratch", help="folder for the scratch cluster (default: the system's temporary folder)")
    parser.add_argument("--shared-buffers", help="instead of the size computed from the data, e.g. 4GB")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="further server setting, repeatable")
    parser.add_argument("--cpu-time", action="store_true",
                        help="time queries in memory by the CPU time of the backend, where the machine has other work")
    slow_reads.add_options(parser)
    experiment.add_options(parser)
    options = parser.parse_args(rest)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    if any("=" not in setting for setting in options.set):
        parser.error("--set wants NAME=VALUE")
    slow_reads.check_options(options, parser)
    experiment.check_options(options)
    return experiment, options


def memory_settings(bench, experiment, contenders):
    """shared_buffers for everything, as far as the machine has the memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    wanted = experiment.bytes_needed(bench.options, contenders) + SPARE_BUFFERS
    limit = int(memory * MEMORY_SHARE)
    if wanted > limit and not bench.options.shared_buffers:
        bench.warn(f"the data want {wanted / 2**30:.1f} GB of shared_buffers, {limit / 2**30:.1f} GB are given: "
                   "figures will include reads (measure fewer contenders at once, or fewer rows)")
    return {"shared_buffers": bench.options.shared_buffers or f"{min(wanted, limit) // 2**20}MB",
            "maintenance_work_mem": f"{min(MAX_SORT_MEMORY, memory // 16) // 2**20}MB"}


def server_settings(bench, experiment, contenders, installation):
    settings = memory_settings(bench, experiment, contenders)
    if any(contender.needs_extension for contender in contenders):
        if not installation.has_extension(contender_list.EXTENSION):
            raise SystemExit(f"bench: {contender_list.EXTENSION} is not installed there: run "
                             f"'make install PG_CONFIG={installation.pg_config}', or choose --contenders btree,hash")
        settings.update(installation.loading(contender_list.EXTENSION))
    settings.update(experiment.settings(bench.options))
    if bench.options.latency:
        settings.update(slow_reads.settings(installation))
    settings.update(setting.split("=", 1) for setting in bench.options.set)
    return settings


def run(experiment, options):
    contenders = contender_list.choose(options.contenders)
    bench = Bench(options, contenders, time.monotonic())
    bench.load_average = round(os.getloadavg()[0], 2)
    installation = Installation(options.pg_config)
    settings = server_settings(bench, experiment, contenders, installation)
    with contextlib.ExitStack() as cleanup:
        bench.server = cleanup.enter_context(ScratchServer(installation, settings, options.scratch, bench.say,
                                                           getattr(options, "data", None), options.latency))
        bench.connection = cleanup.enter_context(contextlib.closing(bench.server.connect()))
        about = report.environment(bench)
        if about["assertions"] == "on":
            bench.warn("this server checks assertions: its times say nothing about a release build")
        if any(contender.needs_extension for contender in contenders):
            contender_list.create_extension(bench.connection)
        try:
            experiment.load(bench)
            experiment.measure(bench)
        except Exception:
            print(f"--- end of the server's log ---\n{bench.server.log_tail()}", file=sys.stderr)
            raise
        except (KeyboardInterrupt, SystemExit):
            if bench.results:
                bench.warn("stopped before the end: these are not all of the figures")
                _report(bench, experiment, about, f"{options.experiment}-stopped")
            raise
    _report(bench, experiment, about, options.experiment)
    experiment.conclude(bench)


def _report(bench, experiment, about, name):
    about["seconds"] = round(time.monotonic() - bench.started, 1)
    print(report.as_text(bench, experiment.title, about))
    if bench.options.out:
        for path in report.write(bench, experiment.title, about, bench.options.out, name):
            bench.say(f"wrote {path}")


def _stop(number, _frame):
    raise SystemExit(f"bench: stopped by signal {number}")


def main():
    # So that the server's context manager gets its turn.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    experiment, options = parse(sys.argv[1:])
    try:
        run(experiment, options)
    except (Failed, psycopg.Error) as error:
        raise SystemExit(f"bench: {type(error).__name__}: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit("bench: interrupted") from None


if __name__ == "__main__":
    main()

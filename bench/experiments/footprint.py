"""What serving costs beside time: log, memory, processor time in the background; see bench/README.md.

A mix of reads and updates, many served indexes, many that are too small to be served, and the library alone.
"""

import os

from harness.clients import check_contenders
from harness.experiment import Experiment

from . import footprint_library, footprint_mix, footprint_tables

PARTS = {"mix": footprint_mix.run, "unserved": footprint_library.run, "indexes": footprint_tables.run_served,
         "small": footprint_tables.run_small}  # in the order in which they run: the last ones leave large catalogs
MIN_ROWS = 20_000


class Footprint(Experiment):
    title = "Costs of serving other than time"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served", rows=1_000_000)
        parser.add_argument("--only", default=",".join(PARTS), metavar="LIST", help="parts to run")
        parser.add_argument("--minutes", type=float, default=10, help="length of `mix`, all samples together, minutes")
        parser.add_argument("--key", choices=footprint_mix.KEYS, default="text", help="primary key of `mix`")
        parser.add_argument("--clients", type=int, default=2 * os.cpu_count(), help="clients of `mix`")
        parser.add_argument("--seconds", type=int, default=10, help="length of a sample of `unserved`, seconds")
        parser.add_argument("--transactions", type=int, metavar="N",
                            help="length of a sample of `unserved`, statements, instead of --seconds")
        parser.add_argument("--indexes", type=int, default=1_000, metavar="N", help="served indexes")
        parser.add_argument("--small-indexes", type=int, default=10_000, metavar="N",
                            help="indexes of one leaf, too small to be served")
        parser.add_argument("--idle-seconds", type=int, default=60, help="how long idle workers are watched, seconds")

    def check_options(self, options):
        check_contenders(options)
        wanted = {part.strip() for part in options.only.split(",") if part.strip()}
        if not wanted or not wanted <= set(PARTS):
            raise SystemExit(f"bench: --only takes some of {','.join(PARTS)}")
        options.parts = [part for part in PARTS if part in wanted]
        if min(options.minutes, options.clients, options.seconds, options.indexes, options.small_indexes,
               options.idle_seconds, options.transactions or 1) <= 0:
            raise SystemExit("bench: all numbers must be positive")
        if options.rows < MIN_ROWS:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}")

    def bytes_needed(self, options, _contenders):
        return (options.rows * (footprint_mix.BYTES_A_ROW + footprint_library.BYTES_A_ROW)
                + footprint_tables.bytes_needed(options))

    def settings(self, options):
        return {"max_connections": str(options.clients + 20)}

    def load(self, bench):
        """Each part loads its own."""

    def measure(self, bench):
        for part in bench.options.parts:
            PARTS[part](bench)


EXPERIMENT = Footprint

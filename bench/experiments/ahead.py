"""What looking ahead gains: joins, lists, ranges and first rows, in memory and cold: see bench/README.md.

One table of random int8 keys with an index for each contender; `served-plain` is `served` that does not look ahead.
"""

from harness import cold, cold_query, each, learned, lists, load
from harness.contenders import BASELINE, Indexes, choose
from harness.each import Each
from harness.experiment import Experiment
from harness.measure import BY_INDEX, Prepared, Query, apply_settings, explain, plan_nodes

from . import ahead_bounds, ahead_cold, plans

TABLE = "t"
PARTS = ("joins", "lists", "limits", "same", "switch", *ahead_cold.PARTS, ahead_bounds.PART, "keyset")
PAGE_ROWS = 20
RANGE_ROWS = 100
LONG_SHARE, LONG_ROWS = 100, 100_000  # rows of a long range: one in so many, and at most
PROBE_BYTES = 40
KEYSET_ENTRY_BYTES = 32  # of an index on (v, k), a row
READING_BYTES = 150  # of a reading and its entry
MIN_ROWS = 100_000
NODE = "Learned Look-Ahead"  # on the outer side of a nested loop


class Ahead(Experiment):
    title = "Looking ahead"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served,served-plain,hash")
        parser.add_argument("--only", default=",".join(PARTS), metavar="LIST", help="parts to run")
        parser.add_argument("--probes", type=int, default=1_000_000, help="probes of a join in memory")
        parser.add_argument("--list-keys", type=int, default=1_000, help="keys of a list")
        parser.add_argument("--lists", type=int, default=200, help="lists of a round in memory")
        parser.add_argument("--statements", type=int, default=10_000, metavar="N",
                            help="executions, in a function, of a statement in memory")
        parser.add_argument("--prepared", type=int, default=50_000, metavar="N",
                            help="executions of the prepared statement in a round")
        parser.add_argument("--switch-rows", type=int, default=3_000_000, help="rows of the table of `switch`, at most")
        parser.add_argument("--page-costs", default=plans.PAGE_COSTS, metavar="LIST", help="as for bench/plans")
        ahead_cold.add_options(parser)

    def check_options(self, options):
        options.parts = {part.strip() for part in options.only.split(",") if part.strip()}
        if not options.parts or not options.parts <= set(PARTS):
            raise SystemExit(f"bench: --only takes some of {','.join(PARTS)}")
        if options.rows < MIN_ROWS:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}")
        if BASELINE not in {contender.name for contender in choose(options.contenders)}:
            raise SystemExit(f"bench: --contenders must name {BASELINE}")
        if min(options.probes, options.list_keys, options.lists, options.statements, options.prepared) < 1:
            raise SystemExit("bench: all numbers must be positive")
        options.costs = plans.page_costs(options.page_costs)
        options.switch_rows = min(options.switch_rows, options.rows)
        ahead_cold.check_options(options)

    def bytes_needed(self, options, contenders):
        entries = sum(contender.bytes_per_int8 for contender in contenders)
        if "keyset" in options.parts:
            entries = max(entries, KEYSET_ENTRY_BYTES * sum(contender.builds for contender in _ordered(contenders)))
        return (options.rows * (load.HEAP_BYTES_A_ROW + entries) + options.probes * 2 * PROBE_BYTES
                + (ahead_bounds.PART in options.parts) * options.rows * READING_BYTES
                + options.lists * options.list_keys * 10
                + ("switch" in options.parts) * plans.bytes_needed(
                    options.switch_rows, plans.sizes(options.switch_rows), _ordered(contenders)))

    # ---- tables ----

    def load(self, bench):
        options = bench.options
        load.random_keys(bench, TABLE, options.rows)
        for order in ("random", "sorted"):
            load.probes(bench, f"probe_{order}", options.rows, options.probes, ordered=order == "sorted")
        lists.make(bench, options.rows, options.lists + ahead_cold.lists_needed(options), options.list_keys)
        each.make_questions(bench, options.rows, max(options.statements, ahead_cold.statements_needed(options)),
                            RANGE_ROWS)
        bench.questions = (lists.TABLE, each.TABLE, *ahead_cold.load_probes(bench))
        self.indexes = Indexes(TABLE, "k", bench.contenders)
        self._build(bench, self.indexes)
        if ahead_bounds.PART in options.parts:
            bench.questions += tuple(ahead_bounds.make_tables(bench))
            self._build(bench, ahead_bounds.readings(bench))
        load.prewarm(bench, [TABLE, "probe_random", "probe_sorted"])
        cold_query.warm_questions(bench)
        bench.connection.execute("CHECKPOINT")
        bench.say("everything is loaded and in memory")

    @staticmethod
    def _build(bench, indexes):
        for contender in indexes.contenders:
            if contender.builds:
                bench.connection.execute(indexes.create_sql(contender))
                bench.say(f"built {contender.index_on(indexes.table)}")
        load.prewarm(bench, indexes.names())
        for index in {contender.index_on(indexes.table) for contender in indexes.contenders if contender.has_model}:
            learned.train_and_check(bench, index)

    # ---- measurements ----

    def measure(self, bench):
        options = bench.options
        bench.run_all(self.indexes, [query for part, query in self._in_memory(options) if part in options.parts])
        if "switch" in options.parts:
            self._switch(bench)
        ahead_cold.measure(bench, TABLE)
        if ahead_bounds.PART in options.parts:
            ahead_bounds.measure(bench, TABLE)
        if "keyset" in options.parts:
            self._keyset(bench)

    @staticmethod
    def _in_memory(options):
        """(part, measurement)"""
        for what, title, columns in (("index_only", "index only", "count(t.k)"), ("heap", "with rows", "sum(t.v)")):
            for order in ("random", "sorted"):
                yield "joins", Join(f"join_{what}_{order}", f"join {title}, {order}", "µs a probe",
                                    index_only=what == "index_only", per=options.probes,
                                    sql=f"SELECT {columns} FROM probe_{order} AS p JOIN {TABLE} AS t ON t.k = p.k")
            yield "lists", lists.query(f"list_{what}", TABLE, options.lists, options.list_keys, what == "index_only")
        for rows in ahead_cold.LIMITS:
            yield "limits", Each(f"limit_{rows}", f"ORDER BY ... LIMIT {rows}", ranges=True, per=options.statements,
                                 statement=ahead_cold.limit_sql(TABLE, rows))
        yield "same", Each("range_heap", f"range of {RANGE_ROWS} rows", ranges=True, per=options.statements,
                           statement=f"SELECT sum(v) FROM {TABLE} WHERE k BETWEEN {{k}} AND {{hi}}")
        rows = min(options.rows // LONG_SHARE, LONG_ROWS)
        high = load.KEY_SPACE // options.rows * rows
        for what, title, columns in (("index_only", ", index only", "count(k)"), ("heap", "", "sum(v)")):
            yield "same", Query(f"long_range_{what}", f"range of {rows:,} rows{title}", "µs a row", ranges=True,
                                index_only=what == "index_only", per=rows, settings=BY_INDEX,
                                sql=f"SELECT {columns} FROM {TABLE} WHERE k BETWEEN 0 AND {high}")
        yield "same", Each("one_row", "one row, in a function", per=options.statements,
                           statement=f"SELECT v FROM {TABLE} WHERE k = {{k}}")
        yield "same", Prepared("prepared", "one row, prepared, round trip", "µs a statement",
                               script=f"\\set i random(1, {options.rows})\n"
                                      f"SELECT v FROM {TABLE} WHERE k = {load.key_of(':i')};\n",
                               statement=f"SELECT v FROM {TABLE} WHERE k = {load.key_of('$1')}",
                               transactions=options.prepared)

    def _keyset(self, bench):
        """On an index of two columns, in the place of all others."""
        indexes = Indexes(TABLE, "v, k", _ordered(bench.contenders))
        cold.warm_restart(bench)
        for contender in bench.contenders:
            if contender.builds:
                self.indexes.drop(bench.connection, contender)
        load.prewarm(bench, [TABLE])
        self._build(bench, indexes)
        cold_query.warm_questions(bench)
        page = f"FROM {TABLE} WHERE (v, k) > ({{v}}, {{k}}) ORDER BY v, k LIMIT {PAGE_ROWS}"
        bench.run_all(indexes, [
            Each("keyset", f"keyset page of {PAGE_ROWS} rows, index only", index_only=True, ranges=True,
                 per=bench.options.statements,
                 statement=f"SELECT coalesce(bit_xor(k), 0) FROM (SELECT k {page}) AS s"),
            Each("keyset_heap", f"keyset page of {PAGE_ROWS} rows", ranges=True, per=bench.options.statements,
                 statement=f"SELECT coalesce(bit_xor(k), 0) + count(c) FROM (SELECT k, ctid AS c {page}) AS s")])

    def _switch(self, bench):
        """bench/plans in small: a table of its own."""
        options, connection = bench.options, bench.connection
        indexes = Indexes("switching", "k", _ordered(bench.contenders))
        sizes = plans.sizes(options.switch_rows)
        load.random_keys(bench, indexes.table, options.switch_rows)
        self._build(bench, indexes)
        load.prewarm(bench, [indexes.table])
        plans.load_outer(bench, options.switch_rows, sizes)
        apply_settings(connection, plans.settings(plans.bytes_needed(options.switch_rows, sizes, [])))
        plans.sweep_all(bench, plans.Sweep(indexes, sizes, options.costs, options.rounds))
        connection.execute("RESET ALL")
        connection.execute(f"DROP TABLE {', '.join([indexes.table, *map(plans.outer, sizes)])}")


def _ordered(contenders):
    """Those whose indexes have an order."""
    return [contender for contender in contenders if contender.ranges]


class Join(Query):
    """Says of `served` where its plan does not look ahead."""

    def check_plan(self, connection, indexes, contender):
        super().check_plan(connection, indexes, contender)
        self.looks_ahead = getattr(self, "looks_ahead", {})
        self.looks_ahead[contender.name] = any(
            node.get("Custom Plan Provider") == NODE for node in plan_nodes(explain(connection, self.sql)))

    def note(self, contender):
        if contender.name == "served" and not self.looks_ahead[contender.name]:
            return f"no {NODE} in the plan"
        return super().note(contender)


EXPERIMENT = Ahead

"""Joins with a primary key on the inner side, by outer : inner and by method: see bench/README.md.

After Chesetti and Pandey, "Evaluating Learned Indexes for External-Memory Joins".  One inner table of random int8
keys; the outer tables' keys all exist.  The methods are forced by the planner's settings, and the plan is checked.
"""

from statistics import median

from harness import cold, learned, load
from harness.contenders import BASELINE, Indexes, choose, judged
from harness.experiment import Experiment, numbers
from harness.measure import (Failed, WrongAnswer, WrongPlan, apply_settings, explain, index_node, microseconds_taken,
                             plan_nodes, server_microseconds)

from . import joins_star
from .ahead import NODE
from .plans import KINDS, OUTER_BYTES, page_costs, settings

TABLE, OUTER = "t", "outer_keys"
PARTS = ("warm", "cold", "star")
ORDERS = ("unsorted", "sorted")
STAR_SHARE = 5  # one row of the star's fact table for so many
HASHED_BYTES = 64  # of a hash table, an outer row
MIN_ROWS = 50_000
IO_WORKERS = 32

METHODS = {"loop": ("Nested Loop", "enable_nestloop"), "hash": ("Hash Join", "enable_hashjoin"),
           "merge": ("Merge Join", "enable_mergejoin")}
NEITHER = {"enable_material": "off", "enable_memoize": "off", "enable_bitmapscan": "off"}
HASH_NAME, MERGE_NAME = "hash join", "merge join"


def forced(method):
    return {**NEITHER, **{name: "on" if which == method else "off" for which, (_, name) in METHODS.items()}}


class Joins(Experiment):
    title = "Join time by table ratio"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served,served-plain", rounds=3)
        parser.add_argument("--only", default=",".join(PARTS), metavar="LIST", help="parts to run")
        parser.add_argument("--ratios", default="1,5,10,100,1000", metavar="LIST",
                            help="inner rows for each outer row")
        parser.add_argument("--cold-rounds", type=int, default=3, help="cold samples of each join")
        cold.add_options(parser)
        parser.set_defaults(io_methods="worker")
        joins_star.add_options(parser)

    def check_options(self, options):
        options.parts = [part.strip() for part in options.only.split(",") if part.strip()]
        if not options.parts or not set(options.parts) <= set(PARTS):
            raise SystemExit(f"bench: --only takes some of {','.join(PARTS)}")
        if options.rows < MIN_ROWS or options.cold_rounds < 1:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}, --cold-rounds at least 1")
        options.ratios = numbers("--ratios", options.ratios, options.rows)
        options.costs = page_costs(options.page_costs)
        chosen = choose(options.contenders)
        if not {BASELINE, "served"} <= {contender.name for contender in chosen} or any(
                contender.am != "btree" for contender in chosen):
            raise SystemExit(f"bench: --contenders must name {BASELINE} and served, and may name served-plain")
        options.star_rows = options.star_rows or max(options.rows // STAR_SHARE, joins_star.MIN_ROWS)
        joins_star.check_options(options)

    def bytes_needed(self, options, contenders):
        entries = sum(contender.bytes_per_int8 for contender in contenders)
        joined = options.rows * (load.HEAP_BYTES_A_ROW + entries) + options.rows // min(options.ratios) * OUTER_BYTES
        return max(joined, ("star" in options.parts) * joins_star.bytes_needed(options))

    def settings(self, options):
        """Hash tables and sorts are to fit; a hash table may take twice its work_mem."""
        chosen = settings(self.bytes_needed(options, []))
        wanted = options.rows // min(options.ratios) * HASHED_BYTES // 2
        return {**chosen, "work_mem": f"{max(wanted // 2**20, int(chosen['work_mem'].removesuffix('MB')))}MB"}

    def load(self, bench):
        if not {"warm", "cold"} & set(bench.options.parts):
            return
        load.random_keys(bench, TABLE, bench.options.rows)
        self.indexes = Indexes(TABLE, "k", bench.contenders, primary_key=True)
        bench.connection.execute(self.indexes.create_sql(bench.contenders[0]))
        self.index = self.indexes.names()[0]
        load.prewarm(bench, [TABLE, self.index])
        learned.train_and_check(bench, self.index)
        bench.say("the inner table and its primary key are in memory")

    def measure(self, bench):
        options = bench.options
        if "warm" in options.parts:
            self._by_ratio(bench, "warm", options.rounds, None)
        if "cold" in options.parts:
            self._cold(bench)
        cold.warm_restart(bench)
        bench.connection.execute(f"DROP TABLE IF EXISTS {TABLE}")  # the other parts have tables of their own
        if "star" in options.parts:
            joins_star.measure(bench)

    def _cold(self, bench):
        chosen = cold.sample_settings(bench, IO_WORKERS)
        methods = cold.io_methods(bench)
        for method in methods:
            settled = {**chosen, **({"io_method": method} if method else {})}
            cold.cold_restart(bench, [TABLE, self.index], settled)
            if method == methods[0]:
                bench.add_table("Cold samples", [["", ""], *cold.disk_rows(bench, {"the disk": [TABLE, self.index]}),
                                                 *cold.description(bench)])
            state = f"cold, {method}" if len(methods) > 1 else "cold"
            self._by_ratio(bench, state, bench.options.cold_rounds, settled)

    # ---- joins by ratio ----

    def _by_ratio(self, bench, state, rounds, cold_settings):
        """All joins of a state, and their tables and charts."""
        found = {}  # (kind, order) -> {ratio: (times by way, pages by way)}
        for ratio in bench.options.ratios:
            for order in ORDERS:
                self.load_outer(bench, ratio, order)
                for kind in KINDS:
                    times, pages = self._sample_all(bench, kind, f"{state}, {KINDS[kind][0]}, {order}, 1 : {ratio:,}",
                                                    rounds, cold_settings)
                    self._add_results(bench, state, kind, order, ratio, times)
                    found.setdefault((kind, order), {})[ratio] = times, pages
        bench.connection.execute(f"DROP TABLE {OUTER}")
        for (kind, order), by_ratio in found.items():
            self._show(bench, state, f"{KINDS[kind][0]}, {order}", by_ratio)

    def load_outer(self, bench, ratio, order):
        bench.connection.execute("RESET ALL")
        bench.connection.execute(f"DROP TABLE IF EXISTS {OUTER}")
        rows = bench.options.rows
        load.probes(bench, OUTER, rows, rows // ratio, ordered=order == "sorted")
        load.prewarm(bench, [OUTER])
        bench.connection.execute("CHECKPOINT")

    def _sample_all(self, bench, kind, title, rounds, cold_settings):
        """Every method by every contender that it differs for, in turn: (ms, pages read or nothing), by way."""
        ways = {way_name(method, contender): (method, contender) for method in METHODS
                for contender in bench.contenders if takes_part(method, contender)}
        times, pages = ({name: [] for name in ways} for _ in range(2))
        for number in range(0 if cold_settings else -1, rounds):  # round -1 is the warm-up
            answers = {}
            for name in bench.in_turn(list(ways), max(number, 0)):
                milliseconds, read, answers[name] = self.sample(bench, kind, *ways[name], cold_settings)
                if number >= 0:
                    times[name].append(milliseconds)
                    pages[name].append(read)
            if len(set(map(repr, answers.values()))) > 1:
                raise WrongAnswer(f"{title}: not the same by all: {answers}")
        bench.say(f"{title}: " + ", ".join(f"{name} {median(values):.3g}" for name, values in times.items()) + " ms")
        return times, pages

    def sample(self, bench, kind, method, contender, cold_settings):
        if cold_settings:
            self._make_cold(bench, contender, cold_settings)
        else:
            self.indexes.show_only(bench.connection, contender)
        connection, sql = bench.connection, KINDS[kind][2].format(outer=OUTER, table=TABLE)
        apply_settings(connection, forced(method))
        check_plan(connection, sql, method, self.index, KINDS[kind][1])
        before = cold.blocks_read(bench, TABLE, self.index)
        with learned.checked(bench, contender, self.index, wanted=method == "loop"):
            take = server_microseconds if cold_settings else microseconds_taken(bench)
            microseconds, rows = take(connection, sql)
        read = sum(cold.blocks_read(bench, TABLE, self.index)) - sum(before)
        if cold_settings and not read:
            raise Failed(f"{sql}: nothing was read: it was not cold")
        return microseconds / 1000, read, rows

    def _make_cold(self, bench, contender, cold_settings):
        """All but the inner pages, the model, the visibility map and the outer table leaves memory."""
        relations = [TABLE, self.index]
        if not cold.evict(bench, relations, cold_settings):
            cold.cold_restart(bench, relations, cold_settings)
        self.indexes.show_only(bench.connection, contender)
        cold.warm_inner_pages(bench, self.indexes, contender)
        cold.warm_visibility(bench, self.indexes)
        load.prewarm(bench, [OUTER])

    def _add_results(self, bench, state, kind, order, ratio, times):
        """The nested loops are one result, with the other joins beside them.

        Merge joins read the whole index whatever the ratio: they are a result of their own for the first one only.
        """
        suffix = f"{state.replace(', ', '_')}_{kind}_{order}_{ratio}"
        title = f"{state}: {{}}, {KINDS[kind][0]}, {order}, 1 : {ratio:,}"
        merges = {contender.name: times[name] for contender in bench.contenders
                  if (name := way_name("merge", contender)) in times}
        notes = {}
        if state == "warm" and not self._looks_ahead(bench, kind):
            notes["served"] = f"no {NODE} in the plan"
        bench.add_result(f"loop_{suffix}", title.format("nested loop"), "ms a join", times, notes=notes)
        if ratio == bench.options.ratios[0]:
            bench.add_result(f"merge_{suffix}", title.format(MERGE_NAME), "ms a join", merges)

    def _looks_ahead(self, bench, kind):
        self.indexes.show_only(bench.connection, judged(bench.contenders))
        apply_settings(bench.connection, forced("loop"))
        plan = explain(bench.connection, KINDS[kind][2].format(outer=OUTER, table=TABLE))
        return any(node.get("Custom Plan Provider") == NODE for node in plan_nodes(plan))

    @staticmethod
    def _show(bench, state, what, by_ratio):
        names = list(next(iter(by_ratio.values()))[0])
        titles = [name if "join" in name else f"nested loop, {name}" for name in names]
        head = ["outer : inner", "outer rows", *titles]
        lines = [[f"1 : {ratio:,}", bench.options.rows // ratio] for ratio in by_ratio]
        for words, which in (("ms a join", 0), ("blocks read", 1)):
            values = [[median(found[which][name]) for name in names] for found in by_ratio.values()]
            if any(map(any, values)):
                bench.add_table(f"{state.capitalize()}: {what}, {words}",
                                [head] + [line + row for line, row in zip(lines, values)])
        where = state.replace("warm", "in memory").replace("cold", "not in memory")
        bench.add_chart(f"Join time by table ratio: {what}, {where}", "inner rows for each outer row", "ms a join",
                        {title: [(ratio, median(found[0][name])) for ratio, found in by_ratio.items()]
                         for title, name in zip(titles, names)}, log_x=True, log_y=True)


def takes_part(method, contender):
    """Only loops look ahead, and a hash join is the same for all."""
    return method == "loop" or contender.name == BASELINE or (method == "merge" and contender.name == "served")


def way_name(method, contender):
    name = {"loop": contender.name, "hash": HASH_NAME, "merge": MERGE_NAME}[method]
    return name if method == "loop" or contender.name == BASELINE else f"{name}, {contender.name}"


def check_plan(connection, sql, method, index, node_type):
    """Raise WrongPlan unless the one join is of this method, and a loop's inner side the index."""
    plan = explain(connection, sql)
    if method == "loop":
        index_node(plan, index, node_type)
    kinds = {node_type for node_type, _ in METHODS.values()}
    joins = [node["Node Type"] for node in plan_nodes(plan) if node["Node Type"] in kinds]
    if joins != [METHODS[method][0]]:
        raise WrongPlan(f"wanted one {METHODS[method][0]}, got {joins}: {sql}")


EXPERIMENT = Joins

"""Where the planner goes from a nested loop over an index to a hash join, and where it should: see bench/README.md.

One inner table of random int8 keys with an index for each contender; outer tables of more and more keys, which all
exist.  Costs are EXPLAIN's, of the same two plans that are timed.
"""

import math
from statistics import median

from harness import learned, load
from harness.contenders import BASELINE, Indexes, choose, judged
from harness.experiment import Experiment
from harness.measure import (WrongAnswer, WrongPlan, apply_settings, explain, index_node, microseconds_taken,
                             plan_nodes)

TABLE = "t"
FIRST = 10  # outer rows
STEPS = 4  # sizes a decade
FURTHER_STEPS = 2  # sizes to look at after all have switched
OUTER_BYTES = 40  # a row of an outer table
MIN_ROWS = 10_000
PAGE_COSTS = "4/1,1.1/1,0.1/0.1"
WORK_MEM = "512MB"  # hash tables are to fit

# Nothing but the two joins that are compared.
NEITHER = {"enable_mergejoin": "off", "enable_material": "off", "enable_memoize": "off", "enable_bitmapscan": "off"}
CHOICE = {**NEITHER, "enable_hashjoin": "on", "enable_nestloop": "on"}
LOOP = {**CHOICE, "enable_hashjoin": "off"}
HASH = {**CHOICE, "enable_nestloop": "off"}
HASH_NAME = "hash join"

KINDS = {
    "index_only": ("index only", "Index Only Scan", "SELECT count(t.k) FROM {outer} AS p JOIN {table} AS t ON t.k = p.k"),
    "heap": ("with table rows", "Index Scan", "SELECT sum(t.v) FROM {outer} AS p JOIN {table} AS t ON t.k = p.k"),
}


class Plans(Experiment):
    title = "Nested loop or hash join"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served", rows=3_000_000, rounds=3)
        parser.add_argument("--steps", type=int, default=STEPS, metavar="N", help="sizes of the outer table in a decade")
        parser.add_argument("--last", type=int, metavar="N", help="outer rows at most (default: as many as --rows)")
        parser.add_argument("--page-costs", default=PAGE_COSTS, metavar="LIST",
                            help="random_page_cost/seq_page_cost, comma-separated")

    def check_options(self, options):
        options.costs = page_costs(options.page_costs)
        if options.rows < MIN_ROWS or options.steps < 1:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}, --steps at least 1")
        options.last = options.last or options.rows
        if not FIRST < options.last <= options.rows:
            raise SystemExit(f"bench: --last must be above {FIRST} and at most --rows")
        chosen = choose(options.contenders)
        if not judged(chosen) or BASELINE not in {contender.name for contender in chosen} or not all(
                contender.index_only for contender in chosen):
            raise SystemExit(f"bench: --contenders must name {BASELINE} and served or learnedbtree, and not hash")
        options.sizes = sizes(options.last, options.steps)

    def bytes_needed(self, options, contenders):
        return bytes_needed(options.rows, options.sizes, contenders)

    def settings(self, options):
        return settings(self.bytes_needed(options, []))

    def load(self, bench):
        options = bench.options
        load.random_keys(bench, TABLE, options.rows)
        self.indexes = Indexes(TABLE, "k", bench.contenders)
        for contender in bench.contenders:
            if contender.builds:
                bench.connection.execute(self.indexes.create_sql(contender))
        load.prewarm(bench, [TABLE, *self.indexes.names()])
        load_outer(bench, options.rows, options.sizes)
        for contender in bench.contenders:
            if contender.has_model:
                learned.train_and_check(bench, contender.index_on(TABLE))
        bench.say("everything is loaded and in memory")

    def measure(self, bench):
        sweep_all(bench, Sweep(self.indexes, bench.options.sizes, bench.options.costs, bench.options.rounds))


def page_costs(listed):
    """[(random_page_cost, seq_page_cost)]"""
    try:
        costs = [tuple(float(part) for part in pair.split("/")) for pair in listed.split(",")]
        if any(len(pair) != 2 or min(pair) < 0 for pair in costs):
            raise ValueError
    except ValueError:
        raise SystemExit("bench: --page-costs wants RANDOM/SEQ,...") from None
    return costs


def bytes_needed(rows, which, contenders):
    row = load.HEAP_BYTES_A_ROW + sum(contender.bytes_per_int8 for contender in contenders)
    return rows * row + sum(which) * OUTER_BYTES


def sizes(last, steps=STEPS):
    """Of the outer tables, so many a decade."""
    count = int(math.log10(last / FIRST) * steps + 1e-9)
    return [round(FIRST * 10 ** (step / steps)) for step in range(count + 1)]


def settings(size):
    """The planner takes everything, so many bytes, for cached, as it is."""
    return {"work_mem": WORK_MEM, "effective_cache_size": str(max(size // 8192 * 2, 524_288))}


def load_outer(bench, rows, which):
    for size in which:
        load.probes(bench, outer(size), rows, size, ordered=False)
    load.prewarm(bench, [outer(size) for size in which])
    bench.connection.execute("CHECKPOINT")


def sweep_all(bench, sweep):
    """Both kinds of join, and what was found into the report."""
    swept = {}
    for kind in bench.track(KINDS):
        swept[kind] = sweep.run(bench, kind)
        bench.add_table(f"Milliseconds and plans: {KINDS[kind][0]}", _sweep_rows(swept[kind], sweep.names))
        for row in _switch_results(kind, swept[kind], sweep.names):
            bench.add_result(*row, timed=False)
    bench.add_table("Where plans switch, outer rows", _switch_rows(bench, swept, sweep.names))
    sweep.indexes.show_all(bench.connection)


class Sweep:
    """Joins with larger and larger outer tables."""

    def __init__(self, indexes, which, costs, rounds):
        self.indexes = indexes
        self.names = [contender.name for contender in indexes.contenders]
        self.sizes = which
        self.costs = costs
        self.rounds = rounds

    def run(self, bench, kind):
        """A dict for each size: times of loops by contender and of hash joins; costs of both and choice of the planner.

        It ends when planner and clock have switched for every contender.
        """
        found = []
        for size in self.sizes:
            step = {"outer_rows": size, "ms": {}, "costs": {}, "choice": {}}
            for number in range(-1, self.rounds):  # round -1 is the warm-up
                self._time(bench, kind, size, number, step["ms"])
            for contender in self.indexes.contenders:
                self.indexes.show_only(bench.connection, contender)
                self._ask_planner(bench, kind, size, contender, step)
            step["ms"] = {name: median(values) for name, values in step["ms"].items()}
            found.append(step)
            bench.say(f"{KINDS[kind][0]}, {size:,} outer rows: " + ", ".join(
                f"{name} {value:.3g} ms" for name, value in step["ms"].items()))
            if all(map(_all_switched, found[-FURTHER_STEPS:])) and len(found) > FURTHER_STEPS:
                break
        return found

    def _time(self, bench, kind, size, round_number, times):
        """A nested loop over each contender's index, and a hash join, which is the same for all."""
        sql = self._sql(kind, size)
        answers = {}
        ways = [(contender, LOOP, contender.name) for contender in self.indexes.contenders]
        ways.append((self.indexes.contenders[0], HASH, HASH_NAME))
        for contender, chosen, name in bench.in_turn(ways, max(round_number, 0)):
            self.indexes.show_only(bench.connection, contender)
            apply_settings(bench.connection, chosen)
            plan = explain(bench.connection, sql)
            if chosen is LOOP:
                index_node(plan, contender.index_on(self.indexes.table), KINDS[kind][1])
            elif join_of(plan) != "Hash Join":
                raise WrongPlan(f"wanted a hash join, got {join_of(plan)}: {sql}")
            microseconds, answers[name] = microseconds_taken(bench)(bench.connection, sql)
            if round_number >= 0:
                times.setdefault(name, []).append(microseconds / 1000)
        if len(set(map(repr, answers.values()))) > 1:
            raise WrongAnswer(f"{sql}: not the same by all: {answers}")

    def _sql(self, kind, size):
        return KINDS[kind][2].format(outer=outer(size), table=self.indexes.table)

    def _ask_planner(self, bench, kind, size, contender, step):
        sql = self._sql(kind, size)
        for random, sequential in self.costs:
            key = f"{random:g}/{sequential:g}"
            costs = []
            for chosen in (LOOP, HASH, CHOICE):
                apply_settings(bench.connection, {**chosen, "random_page_cost": random, "seq_page_cost": sequential})
                plan = explain(bench.connection, sql)
                costs.append(plan["Total Cost"])
            step["costs"].setdefault(key, {})[contender.name] = costs[:2]
            step["choice"].setdefault(key, {})[contender.name] = join_of(plan)
        for name in ("random_page_cost", "seq_page_cost"):
            bench.connection.execute(f"RESET {name}")


def outer(size):
    return f"outer_{size}"


def join_of(plan):
    joins = [node["Node Type"] for node in plan_nodes(plan) if node["Node Type"] in ("Nested Loop", "Hash Join")]
    if len(joins) != 1:
        raise WrongPlan(f"wanted one join, got {joins}")
    return joins[0]


def _all_switched(step):
    choices = {choice for by_name in step["choice"].values() for choice in by_name.values()}
    return choices == {"Hash Join"} and min(step["ms"], key=step["ms"].get) == HASH_NAME


def crossover(points):
    """Outer rows at which a nested loop becomes dearer than a hash join; `points` are (rows, loop, hash).

    Interpolated in logarithms between the last size where the loop is cheaper and the next.  None: it stays cheaper.
    """
    cheaper = [number for number, (_, loop, hashed) in enumerate(points) if loop <= hashed]
    if not cheaper:
        return float(points[0][0])
    if cheaper[-1] + 1 == len(points):
        return None
    (rows, loop, hashed), (next_rows, next_loop, next_hashed) = points[cheaper[-1]:cheaper[-1] + 2]
    before, after = math.log(hashed / loop), math.log(next_loop / next_hashed)
    return rows * (next_rows / rows) ** (before / (before + after) if before + after else 0.5)


def measured_switch(steps, name):
    return crossover([(step["outer_rows"], step["ms"][name], step["ms"][HASH_NAME]) for step in steps])


def planned_switch(steps, key, name):
    return crossover([(step["outer_rows"], *step["costs"][key][name]) for step in steps])


# ---- what the report shows ----

def _sweep_rows(steps, names):
    keys = list(steps[0]["choice"])
    rows = [["outer rows", *(f"loop, {name}" for name in names), HASH_NAME,
             *(f"{name} at {key}" for key in keys for name in names)]]
    for step in steps:
        rows.append([f"{step['outer_rows']:,}", *(step["ms"][name] for name in [*names, HASH_NAME]),
                     *("loop" if step["choice"][key][name] == "Nested Loop" else "hash"
                       for key in keys for name in names)])
    return rows


def _switch_results(kind, steps, names):
    title = KINDS[kind][0]

    def result(key, words, switch):
        samples = {name: [round(found)] for name in names if (found := switch(name)) is not None}
        return key, f"{title}: {words}", "outer rows", samples

    yield result(f"measured_{kind}", "a hash join is faster from", lambda name: measured_switch(steps, name))
    for key in steps[0]["costs"]:
        yield result(f"planned_{kind}_{key}", f"the planner switches at {key}, from",
                     lambda name, key=key: planned_switch(steps, key, name))


def _switch_rows(bench, swept, names):
    """Planner and clock side by side, and what the one index has over the other by each."""
    learning = judged(bench.contenders).name
    share = lambda a, b: f"{a / b:.2f}" if a and b else "–"  # noqa: E731
    rows = [["join, page costs", *(f"{name}: {what}" for name in names for what in ("planner", "clock", "ratio")),
             f"{learning} / {BASELINE}: planner", "clock"]]
    for kind, steps in swept.items():
        clock = {name: measured_switch(steps, name) for name in names}
        words = lambda rows: f"> {steps[-1]['outer_rows']:,}" if rows is None else f"{rows:,.0f}"  # noqa: E731, B023
        for key in steps[0]["costs"]:
            planner = {name: planned_switch(steps, key, name) for name in names}
            rows.append([f"{KINDS[kind][0]}, {key}"]
                        + [entry for name in names for entry in (words(planner[name]), words(clock[name]),
                                                                 share(planner[name], clock[name]))]
                        + [share(which[learning], which[BASELINE]) for which in (planner, clock)])
    return rows


EXPERIMENT = Plans

"""Analytical queries with the planner free: TPC-H, TPC-DS, and joins of many tables: see bench/README.md.

learnedbtree.btree_indexes is `none` and `all` by turns in one session.  A query of a set is executed as it is; its
plans, costs included, and its answers are to be the same but for our nodes.
"""

import hashlib
import re
import time
from statistics import median

import psycopg

from harness import cold, load
from harness.contenders import BASELINE, BTREE_INDEXES
from harness.cpu import cpu_seconds
from harness.experiment import Experiment
from harness.measure import Failed, apply_settings, explain, plan_nodes

from . import analytics_films as films
from . import analytics_sets as sets
from . import analytics_tables as tables
from .ahead import NODE

WAYS = {BASELINE: "none", "served": "all"}
SLOWER, ROUNDS_IF_SLOWER = 0.97, 7  # a ratio below takes so many rounds
PATIENCE = 4  # times --timeout for all but the first execution
COLD_BUFFERS = "128MB"
COLD_FROM = 18  # the first version that can empty shared_buffers without a restart
EXPLAINS, UNTIMED = 50, 10  # of a block of --planning
ESTIMATES = re.compile("Cost|^Plan (Rows|Width)$")
PARALLEL = {"parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0,
            "min_parallel_index_scan_size": 0, "max_parallel_workers_per_gather": 2}  # for --plans


class Analytics(Experiment):
    title = "Analytical queries"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served", rounds=3)
        parser.add_argument("--sets", default=",".join(sets.TITLES), metavar="LIST", help="sets of tables and queries")
        parser.add_argument("--scale", type=float, default=1.0, help="scale factor of all sets")
        parser.add_argument("--queries", metavar="LIST", help="of these only, e.g. tpcds:17,25,job:1a; none: of no set")
        parser.add_argument("--page-cost", default="4", metavar="LIST", help="random_page_cost, comma-separated")
        parser.add_argument("--statistics", type=int, default=0, metavar="N",
                            help="ANALYZE anew so many times, and measure with each; 0: once, as loaded")
        parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS",
                            help="leave out queries that take longer with none")
        parser.add_argument("--work-mem", default="64MB", metavar="SIZE")
        parser.add_argument("--parallel", type=int, default=0, metavar="N", help="max_parallel_workers_per_gather")
        parser.add_argument("--cold", action="store_true", help="all caches empty before each execution")
        parser.add_argument("--planning", type=int, default=0, metavar="N",
                            help=f"time planning, too, in so many blocks of {EXPLAINS} EXPLAINs")
        parser.add_argument("--plans", action="store_true", help="compare plans alone, execute nothing")
        parser.add_argument("--data", metavar="DIR", help="folder of a cluster that is kept, and used again")

    def check_options(self, options):
        names = [name.strip() for name in options.sets.split(",") if name.strip()]
        if not names or not set(names) <= set(sets.TITLES):
            raise SystemExit(f"bench: --sets takes some of {','.join(sets.TITLES)}")
        if options.scale <= 0 or options.timeout <= 0 or min(options.statistics, options.planning, options.parallel) < 0:
            raise SystemExit("bench: --scale and --timeout must be positive, other numbers at least 0")
        if options.latency and not options.cold:
            raise SystemExit("bench: --latency is for --cold")
        try:
            options.costs = [float(cost) for cost in options.page_cost.split(",")]
        except ValueError:
            raise SystemExit("bench: --page-cost wants numbers, comma-separated") from None
        if {name.strip() for name in options.contenders.split(",")} != set(WAYS):
            raise SystemExit("bench: --contenders are btree and served here")
        options.wanted = _wanted(options.queries, names)
        options.rows = round(options.scale * sum(sets.ROWS[name] for name in names))
        self.sets = [sets.DataSet(name, options.scale) for name in names]
        self.failures = []

    def bytes_needed(self, options, contenders):
        return round(options.scale * max(sets.BYTES[data.name] for data in self.sets))  # one set at a time

    def settings(self, options):
        if not options.cold:
            return {}
        return {"shared_buffers": options.shared_buffers or COLD_BUFFERS,
                "effective_io_concurrency": str(cold.IO_CONCURRENCY)}

    def load(self, bench):
        if bench.options.cold and bench.server.installation.major < COLD_FROM:
            raise SystemExit(f"bench: --cold wants a server of version {COLD_FROM} or later")
        for data in self.sets:
            data.prepare(bench)
            if unknown := set(bench.options.wanted.get(data.name, ())) - set(data.queries):
                raise SystemExit(f"bench: {data.title} has no query {', '.join(sorted(unknown))}")
        for data in self.sets:
            data.load(bench)

    def measure(self, bench):
        totals, compared = [tables.TOTALS_HEAD], [tables.COMPARED_HEAD]
        try:
            for data in bench.track(self.sets):
                with sets.inside(bench, data.database):
                    self._measure_set(bench, data, totals, compared)
        finally:
            for title, rows in (("Totals", totals), ("Plans and answers", compared)):
                if len(rows) > 1:
                    bench.add_table(title, rows)

    def conclude(self, bench):
        if self.failures:
            raise Failed(f"{len(self.failures)} failures: {'; '.join(self.failures)}")

    def _measure_set(self, bench, data, totals, compared):
        options = bench.options
        apply_settings(bench.connection, {"jit": "off", "work_mem": options.work_mem,
                                          "max_parallel_workers_per_gather": options.parallel, BTREE_INDEXES: "all"})
        served, models = sets.train_all(bench)
        if not options.cold:
            load.prewarm(bench, sets.relations(bench.connection))
        bench.add_table(f"{data.title}: conditions", tables.conditions(bench, data, served, models))
        names = [name for name in data.queries if name in options.wanted.get(data.name, data.queries)]
        for number in bench.track(range(max(options.statistics, 1)) if names else []):
            if options.statistics:
                bench.connection.execute("ANALYZE")
            for cost in bench.track(options.costs):
                apply_settings(bench.connection, {"random_page_cost": cost})
                if options.plans:
                    self._compare_plans(bench, data, names, cost, compared)
                    continue
                what = f"{data.title}, random_page_cost {cost:g}" + f", statistics {number + 1}" * bool(options.statistics)
                run = Run(bench, data, what)
                try:
                    for name in bench.track(names):
                        run.one(name)
                finally:  # what was measured until Ctrl-C is reported, too
                    self.failures += run.failures
                    tables.add_run(bench, f"{data.name}_{cost:g}_{number + 1}", what, run, totals, compared)
        if options.planning and data.name == "job":
            _planning(bench)


    def _compare_plans(self, bench, data, names, cost, compared):
        """All of them, without parallel query and with it."""
        for words, settings in (("", {}), (", parallel", PARALLEL)):
            apply_settings(bench.connection, settings)
            run = Run(bench, data, f"{data.title}, random_page_cost {cost:g}{words}")
            for name in bench.track(names):
                run.compare(name)
            apply_settings(bench.connection, dict.fromkeys(settings))
            apply_settings(bench.connection, {"max_parallel_workers_per_gather": bench.options.parallel})
            self.failures += run.failures
            tables.add_plans(run.what, run, compared)


def _wanted(listed, names):
    """{set: names of queries}; empty: all of all sets."""
    if not listed:
        return {}
    wanted, current = {name: [] for name in names}, None
    for part in listed.split(",") if listed != "none" else []:
        before, colon, query = part.strip().rpartition(":")
        current = before if colon else current
        if current not in wanted:
            raise SystemExit("bench: --queries wants SET:QUERY,QUERY,..., of sets that --sets names")
        wanted[current].append(query)
    return wanted


class Run:
    """The queries of a set with one page cost and one set of statistics."""

    def __init__(self, bench, data, what):
        self.bench, self.data, self.what = bench, data, what
        self.found = []  # a Query each
        self.left_out = []
        self.failures = []  # what must not be

    def one(self, name):
        """Measure a query, or say why not."""
        query = Query(name, self.data.queries[name])
        try:
            self._measure(query)
        except psycopg.errors.QueryCanceled:
            limit = self.bench.options.timeout
            if query.ended:  # none was fast enough
                self._fail(f"{self.what}, {name}: over {PATIENCE * limit:g} s, after less than that with "
                           f"{' and '.join(query.ended)}")
            self.left_out.append(name)
            self.bench.say(f"{self.what}, {name}: left out, over {limit:g} s")
            return
        self.found.append(query)
        self.bench.say(f"{self.what}, {name}: none {median(query.ms[BASELINE]):.4g} ms, all "
                       f"{median(query.ms['served']):.4g} ms, {query.ratio:.2f}×, our nodes: {query.nodes}, plan "
                       f"{query.plan}")

    def compare(self, name):
        """Compare a query's plans."""
        query = Query(name, self.data.queries[name])
        self._compare_plans(query)
        self.found.append(query)

    def _measure(self, query):
        for way in WAYS:  # the warm-up
            self._execute(query, way, 1 if way == BASELINE else PATIENCE, warm_up=True)
            query.ended.append(WAYS[way])
        self._compare_plans(query)
        rounds, number = self.bench.options.rounds, 0
        while number < rounds:
            for way in self.bench.in_turn(list(WAYS), number):
                self._execute(query, way, PATIENCE)
            number += 1
            if number == rounds and query.ratio < SLOWER:
                rounds = max(rounds, ROUNDS_IF_SLOWER)
        if len(set(query.answers.values())) > 1 and not self._same_without_limit(query):
            self._fail(f"{self.what}, {query.name}: the answers differ")
            query.same_answers = False

    def _execute(self, query, way, patience, warm_up=False):
        bench, session = self.bench, self.bench.connection
        apply_settings(session, {BTREE_INDEXES: WAYS[way], "statement_timeout": 0})
        explain(session, query.sql)  # what the session has to learn after the change is not the query's time
        before = _lookups(session) if warm_up and way == BASELINE else None
        if bench.options.cold and not warm_up:
            _empty_caches(bench)
        apply_settings(session, {"statement_timeout": self._patience(patience)})
        milliseconds, answer = _timed(bench, query.sql)
        apply_settings(session, {"statement_timeout": 0})
        if before is not None and (asked := _lookups(session) - before):
            raise Failed(f"{self.what}, {query.name}: {asked} lookups by models with none")
        if not warm_up:
            query.ms[way].append(milliseconds)
        query.answers.setdefault(way, answer)
        if answer != query.answers[way]:
            self._fail(f"{self.what}, {query.name}: {way} gives one answer, then another")

    def _compare_plans(self, query):
        theirs, served = self._plan(query, BASELINE), self._plan(query, "served")
        query.nodes = sum(map(is_ours, plan_nodes(served)))
        ours = without_ours(served)
        if ours != theirs:
            theirs = self._plan(query, BASELINE)  # the planner itself finds and marks dead entries at an index's ends
        if any(map(is_ours, plan_nodes(theirs))):
            raise Failed(f"{self.what}, {query.name}: a plan with none has {NODE}")
        query.plan = ("same" if ours == theirs else
                      "costs differ" if without_estimates(ours) == without_estimates(theirs) else "differs")
        if query.plan != "same":
            self._fail(f"{self.what}, {query.name}: plan {query.plan}")

    def _plan(self, query, way):
        apply_settings(self.bench.connection, {BTREE_INDEXES: WAYS[way]})
        return explain(self.bench.connection, query.sql)

    def _same_without_limit(self, query):
        """Which of equal rows a LIMIT lets through is open where plans differ."""
        whole = re.sub(r"\s+LIMIT\s+\d+\s*$", "", query.sql, flags=re.IGNORECASE)
        if whole == query.sql or query.plan != "differs":
            return False
        answers = set()
        for value in WAYS.values():
            apply_settings(self.bench.connection, {BTREE_INDEXES: value, "statement_timeout": self._patience(PATIENCE)})
            answers.add(_timed(self.bench, whole)[1])
        return len(answers) == 1

    def _patience(self, times):
        """Milliseconds."""
        return round(times * self.bench.options.timeout * 1000)

    def _fail(self, words):
        self.failures.append(words)
        self.bench.warn(words)


class Query:
    """One query, and what was found."""

    def __init__(self, name, sql):
        self.name, self.sql = name, sql
        self.ms = {way: [] for way in WAYS}
        self.answers = {}
        self.same_answers = True
        self.plan, self.nodes = None, 0
        self.ended = []  # the warm-ups that were in time

    @property
    def ratio(self):
        """How many times as fast as none all is."""
        return median(self.ms[BASELINE]) / median(self.ms["served"])


def is_ours(node):
    return node.get("Custom Plan Provider") == NODE


def without_ours(node):
    """The plan with each of our nodes replaced by its only child."""
    plans = [without_ours(child) for child in node.get("Plans", ())]
    if is_ours(node) and len(plans) == 1:
        return {**plans[0], **{name: node[name] for name in ("Parent Relationship", "Subplan Name") if name in node}}
    return {**node, "Plans": plans} if plans else node


def without_estimates(node):
    return {**{name: value for name, value in node.items() if not ESTIMATES.search(name)},
            "Plans": [without_estimates(child) for child in node.get("Plans", ())]}


def _timed(bench, sql):
    """(ms until all rows are here, planning included; what tells the answer: its rows as text, in any order)"""
    session = bench.connection
    began, spent = time.perf_counter(), cpu_seconds(session.info.backend_pid)
    result = session.execute(sql).pgresult
    if bench.options.cpu_time and not bench.options.cold:
        seconds = cpu_seconds(session.info.backend_pid) - spent
    else:
        seconds = time.perf_counter() - began
    columns = range(result.nfields)
    rows = sorted(repr([result.get_value(row, column) for column in columns]) for row in range(result.ntuples))
    return seconds * 1000, hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _lookups(session):
    session.execute("SELECT pg_stat_force_next_flush()")
    return session.execute("SELECT coalesce(sum(lookups), 0)::int8 FROM learnedbtree_stat").fetchone()[0]


def _empty_caches(bench):
    """Neither shared_buffers nor the operating system has a page of this database; the session's own caches stay."""
    bench.connection.execute("CREATE EXTENSION IF NOT EXISTS pg_buffercache")
    skipped = bench.connection.execute("SELECT buffers_skipped FROM pg_buffercache_evict_all()").fetchone()[0]
    if skipped:
        bench.warn(f"{skipped} pages could not be evicted")
    database = bench.connection.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()[0]
    cold.drop_from_cache(bench, [path for path in (bench.server.data / "base" / str(database)).iterdir() if path.is_file()])


def _planning(bench):
    """Planning time of a join of eight tables by the server's clock, in blocks by turns."""
    session = bench.connection
    apply_settings(session, {"random_page_cost": None})
    blocks = {way: [] for way in WAYS}
    nodes = {}
    for number in bench.track(range(-1, bench.options.planning)):
        for way in bench.in_turn(list(WAYS), max(number, 0)):
            apply_settings(session, {BTREE_INDEXES: WAYS[way]})
            times = []
            for execution in range(UNTIMED + EXPLAINS):
                found = session.execute(f"EXPLAIN (FORMAT JSON, SUMMARY) {films.PLANNED}").fetchone()[0][0]
                if execution >= UNTIMED:
                    times.append(found["Planning Time"])
            nodes[way] = sum(map(is_ours, plan_nodes(found["Plan"])))
            if number >= 0:
                blocks[way].append(median(times))
    bench.add_result("planning", f"planning a join of eight tables ({nodes['served']} of our nodes)", "ms", blocks)
    medians = {way: median(values) for way, values in blocks.items()}
    bench.say(f"planning: none {medians[BASELINE]:.4g} ms, all {medians['served']:.4g} ms")


EXPERIMENT = Analytics

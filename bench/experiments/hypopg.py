"""HypoPG's hypothetical btree index beside the real btree and the real learnedbtree index: see bench/README.md.

Nothing is timed.  Two tables, of unique and of repeated keys; for each query its plan, cost and descents by each of the
three indexes, each alone; their sizes; and what HypoPG says to an index of ours.
"""

import psycopg

from harness import learned, load
from harness.contenders import BASELINE, EXTENSION, Indexes
from harness.experiment import Experiment
from harness.measure import Failed, WrongPlan, apply_settings, explain, plan_nodes

UNIQUE, REPEATED, OUTER = "t", "d", "outer_rows"
REPEATS = 100
OUTER_ROWS = 1_000
MIN_ROWS = 100_000
HYPOTHETICAL = "hypothetical"
PAGE_CHARGE = 50  # operators' time that btree's estimate charges for each page of a descent
PAGE_BYTES = 8152  # of a page, without its header and nbtree's special space

# Of each plan an index scan has to be part, or there would be nothing to compare.
SETTINGS = {"enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off",
            "enable_memoize": "off", "cpu_operator_cost": "0.0025"}
KEY = load.key_of("17")
QUERIES = (  # name, table, query
    ("point", UNIQUE, f"SELECT v FROM t WHERE k = {KEY}"),
    ("point, index only", UNIQUE, f"SELECT k FROM t WHERE k = {KEY}"),
    ("list of 10", UNIQUE, "SELECT v FROM t WHERE k IN ({})".format(", ".join(map(str, range(10))))),
    ("range", UNIQUE, "SELECT v FROM t WHERE k BETWEEN 0 AND 9000000000000000"),
    ("join", UNIQUE, f"SELECT t.v FROM {OUTER} AS p JOIN t ON t.k = p.k"),
    ("first 10 in order", UNIQUE, "SELECT v FROM t ORDER BY k LIMIT 10"),
    ("next 10 from a key on", UNIQUE, "SELECT v FROM t WHERE k >= 0 ORDER BY k LIMIT 10"),
    ("repeated key", REPEATED, "SELECT v FROM d WHERE k = 5"),
)


class HypoPG(Experiment):
    title = "Hypothetical btree, btree and learnedbtree"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,learnedbtree", rows=1_000_000, rounds=1)

    def check_options(self, options):
        if options.rows < MIN_ROWS:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}")
        if {name.strip() for name in options.contenders.split(",")} != {BASELINE, EXTENSION}:
            raise SystemExit(f"bench: --contenders must be {BASELINE},{EXTENSION}")

    def bytes_needed(self, options, contenders):
        return 2 * options.rows * (load.HEAP_BYTES_A_ROW + sum(contender.bytes_per_int8 for contender in contenders))

    def load(self, bench):
        if not bench.server.installation.has_extension("hypopg"):
            raise Failed("HypoPG is not installed there (Debian: package postgresql-NN-hypopg)")
        rows = bench.options.rows
        bench.connection.execute("CREATE EXTENSION hypopg")
        bench.connection.execute("CREATE EXTENSION pageinspect")
        load.random_keys(bench, UNIQUE, rows)
        load.fill(bench, REPEATED, "k int8 NOT NULL, v int4 NOT NULL",
                  f"SELECT i % {rows // REPEATS}, i & 1023 FROM generate_series(1, {rows}) AS i")
        load.probes(bench, OUTER, rows, OUTER_ROWS, ordered=False)
        self.indexes = {table: Indexes(table, "k", bench.contenders) for table in (UNIQUE, REPEATED)}
        for indexes in self.indexes.values():
            for contender in bench.contenders:
                bench.connection.execute(indexes.create_sql(contender))
                if contender.needs_extension:
                    model = learned.train(bench, contender.index_on(indexes.table))
                    if model["state"] != "ready":
                        raise Failed(f"no model: {model['state']}, {model['reason']}")

    def measure(self, bench):
        apply_settings(bench.connection, SETTINGS)
        high = self._one(bench, f"SELECT level + 1 FROM bt_metap('{UNIQUE}_{BASELINE}')")
        names = [contender.name for contender in bench.contenders]
        plans = [["", f"cost, {HYPOTHETICAL}", *(f"cost, {name}" for name in names), f"descent, {HYPOTHETICAL}",
                  *(f"descent, {name}" for name in names), "plans"]]
        for query in QUERIES:
            plans.append(self._compare(bench, *query))
        bench.add_table("Costs of plans, and pages that each descent is charged", plans)
        bench.add_table("Sizes", self._sizes(bench))
        bench.add_table("HypoPG and our access method", self._refusals(bench))
        bench.add_table("Why they differ", _reasons(high))

    # ---- plans ----

    def _compare(self, bench, name, table, sql):
        """One row: the plan's cost by each index alone, and the pages that a descent is charged."""
        found = [self._by_hypothetical(bench, table, sql)]
        for contender in bench.contenders:
            self.indexes[table].show_only(bench.connection, contender)
            found.append(self._cost(bench, sql, contender.index_on(table)))
        self.indexes[table].show_all(bench.connection)
        same = len({shape for _, _, shape in found}) == 1
        return [name, *(cost for cost, _, _ in found), *(int(pages) for _, pages, _ in found),
                "the same" if same else "; ".join(shape for _, _, shape in found)]

    def _by_hypothetical(self, bench, table, sql):
        """Without the real indexes."""
        bench.connection.execute("UPDATE pg_index SET indisvalid = false WHERE indrelid = %s::regclass", [table])
        name = bench.connection.execute("SELECT indexname FROM hypopg_create_index(%s)",
                                        [f"CREATE INDEX ON {table} (k)"]).fetchone()[0]
        try:
            return self._cost(bench, sql, name)
        finally:
            bench.connection.execute("SELECT hypopg_reset()")

    @staticmethod
    def _cost(bench, sql, index):
        """(cost of the plan, pages that a scan is charged for the way to its first leaf, the plan's nodes).

        The pages show when an operator's time is made dear: with two more of it, what the scan costs before its first
        row grows by two for each comparison and by a hundred for each page.
        """
        plan = explain(bench.connection, sql)
        shape = " / ".join(node["Node Type"] for node in plan_nodes(plan))
        node, = [node for node in plan_nodes(plan) if "Index Name" in node]
        if node["Index Name"] != index:
            raise WrongPlan(f"wanted {index}, got {node['Index Name']}: {sql}")
        starts = []
        for cost in (1, 3):
            bench.connection.execute(f"SET cpu_operator_cost = {cost}")
            dear, = [node for node in plan_nodes(explain(bench.connection, sql)) if "Index Name" in node]
            starts.append(dear["Startup Cost"])
        bench.connection.execute(f"SET cpu_operator_cost = {SETTINGS['cpu_operator_cost']}")
        # What is left over are the comparisons, as many as the logarithm of the rows: fewer than a page's charge.
        return plan["Total Cost"], (starts[1] - starts[0]) / 2 // PAGE_CHARGE, shape

    # ---- sizes ----

    def _sizes(self, bench):
        rows = [["", "rows", f"pages, {HYPOTHETICAL}", *(f"pages, {contender.name}" for contender in bench.contenders),
                 f"bytes a row, {HYPOTHETICAL}", f"bytes a row, {BASELINE}", f"{HYPOTHETICAL} / {BASELINE}"]]
        for title, table, options in (("unique keys", UNIQUE, ""), ("repeated keys", REPEATED, ""),
                                      ("unique keys, fillfactor 50", UNIQUE, "WITH (fillfactor = 50)"),
                                      ("repeated keys, no deduplication", REPEATED, "WITH (deduplicate_items = off)")):
            hypothetical = self._hypothetical_pages(bench, table, options)
            real = [self._real_pages(bench, contender, table, options) for contender in bench.contenders]
            count = bench.options.rows
            rows.append([title, count, hypothetical, *real, hypothetical * PAGE_BYTES / count,
                         real[0] * PAGE_BYTES / count, hypothetical / real[0]])
        return rows

    @staticmethod
    def _hypothetical_pages(bench, table, options):
        """HypoPG warns of options that it does not know, and goes without them."""
        bench.connection.execute("SELECT FROM hypopg_create_index(%s)", [f"CREATE INDEX ON {table} (k) {options}"])
        try:
            return HypoPG._one(bench, "SELECT hypopg_relation_size(indexrelid) / 8192 FROM hypopg()")
        finally:
            bench.connection.execute("SELECT hypopg_reset()")

    def _real_pages(self, bench, contender, table, options):
        index = contender.index_on(table)
        if options:
            bench.connection.execute(f"CREATE INDEX tried ON {table} USING {contender.am} (k) {options}")
            index = "tried"
        pages = self._one(bench, f"SELECT pg_relation_size('{index}') / 8192")
        bench.connection.execute("DROP INDEX IF EXISTS tried")
        return pages

    @staticmethod
    def _one(bench, sql):
        return bench.connection.execute(sql).fetchone()[0]

    # ---- what it says ----

    @staticmethod
    def _refusals(bench):
        version = HypoPG._one(bench, "SELECT extversion FROM pg_extension WHERE extname = 'hypopg'")
        rows = [[f"HypoPG {version} is asked for", "answer"]]
        for options in ("", " WITH (max_error = 2)"):
            statement = f"CREATE INDEX ON {UNIQUE} USING {EXTENSION} (k){options}"
            try:
                bench.connection.execute("SELECT FROM hypopg_create_index(%s)", [statement])
                answer = "made"
            except psycopg.Error as error:
                answer = f"ERROR: {error.diag.message_primary}"
            rows.append([statement, answer])
        hides = HypoPG._one(bench, "SELECT count(*) FROM pg_proc WHERE proname = 'hypopg_hide_index'")
        rows.append(["hypopg_hide_index(...)", "there is, for real indexes of any access method" if hides else
                     "this version has none: drop the index in a transaction that is rolled back"])
        bench.connection.execute("SELECT hypopg_reset()")
        return rows


def _reasons(high):
    return [
        ["what", "why"],
        ["pages of a descent", "HypoPG gives its index a height of -1, so btree's estimate charges none; the real btree "
         f"is charged {high}, from the root to the leaf; learnedbtree one, as its model is ready"],
        ["first 10 in order", "no condition on the key: btree's engine serves it in both real indexes, at one cost"],
        ["join, ranges", "an index that looks larger has more pages to read: dearer, for all its free descent"],
        ["size, unique keys", "HypoPG counts 16 bytes a row and the key's average width, and adds 20 % for bloat and "
         "10 % for the fillfactor; btree has 12 bytes and padding, pages 90 % full, and inner pages (1 in 300)"],
        ["size, repeated keys", "HypoPG does not know that equal keys share an entry (deduplicate_items)"],
        ["size, fillfactor 50", "HypoPG adds 50 %, where half-full pages take twice as many; its larger rows make up"],
        ["USING learnedbtree", "HypoPG has a list of access methods, and ours is not on it; a hypothetical btree tells "
         "which plans become possible, and is one page of a descent too cheap"],
    ]


EXPERIMENT = HypoPG

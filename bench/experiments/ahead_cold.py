"""The cold parts of bench/ahead: the same joins and lists, a range and first rows, with caches empty.

Of a join or list the index's leaves are cold, or the table, or both; all else is warm.  What the disk gains from 32
reads under way over one, asked of the same files in the same run, says how much there is to be had.
"""

import dataclasses
import itertools
import random

from harness import cold, cold_query, each, lists, load
from harness.cold_query import BY_BITMAP, INDEX, TABLE, ColdQuery
from harness.contenders import Indexes

PARTS = ("cold-joins", "cold-lists", "cold-range", "cold-limits")
ORDERS = ("random", "sorted")
LIMITS = (1, 8, 16, 32, 100)
IO_WORKERS = 32
PROBES_SHARE, RANGE_SHARE = 1_000, 100  # of the rows, one in so many, at most
SEED = 15

# What is warm: (suffix, title, relations).  With only the index read, the table does not matter.
STATES = {"index_only": (("index", "index cold", ()),),
          "heap": (("index", "index cold", (TABLE,)), ("table", "table cold", (INDEX,)), ("both", "both cold", ()))}
READS = ((INDEX,), (TABLE,), (INDEX, TABLE))
WHAT = {"index_only": ("index only", "Index Only Scan", "count(s.k)", "count(s.k), sum(s.k)"),
        "heap": ("with rows", "Index Scan", "sum(s.v)", "count(*), sum(s.v)")}


def add_options(parser):
    parser.add_argument("--cold-rounds", type=int, default=5, help="cold samples of each contender and query")
    parser.add_argument("--cold-probes", type=int, metavar="N",
                        help=f"probes of a cold join (default: 10,000, at most rows / {PROBES_SHARE})")
    parser.add_argument("--cold-lists", type=int, default=5, help="lists of a cold sample")
    parser.add_argument("--range-rows", type=int, metavar="N",
                        help=f"rows of the cold range (default: 10,000, at most rows / {RANGE_SHARE})")
    parser.add_argument("--cold-statements", type=int, default=100, metavar="N",
                        help="statements with LIMIT of a cold sample")
    cold.add_options(parser)


def check_options(options):
    options.cold_probes = options.cold_probes or min(10_000, options.rows // PROBES_SHARE)
    options.range_rows = options.range_rows or min(10_000, options.rows // RANGE_SHARE)
    if min(options.cold_rounds, options.cold_probes, options.cold_lists, options.range_rows,
           options.cold_statements) < 1 or options.range_rows * options.cold_rounds > options.rows:
        raise SystemExit("bench: all numbers must be positive, and --cold-rounds ranges fit into the table")


def lists_needed(options):
    return options.cold_rounds * options.cold_lists


def statements_needed(options):
    return options.cold_rounds * options.cold_statements


def load_probes(bench):
    """A table for each order and round; returns their names."""
    options, made = bench.options, []
    for order, number in itertools.product(ORDERS, range(options.cold_rounds if "cold-joins" in options.parts else 0)):
        made.append(_probes(order, number))
        # Behind those of the joins in memory.
        load.probes(bench, made[-1], options.rows, options.cold_probes, order == "sorted",
                    first=options.probes + 1 + number * options.cold_probes)
    return made


def _probes(order, number):
    return f"cold_{order}_{number}"


def measure(bench, table):
    parts = bench.options.parts & set(PARTS)
    if not parts:
        return
    indexes = Indexes(table, "k", [contender for contender in bench.contenders if contender.ranges])
    settings = cold.sample_settings(bench, IO_WORKERS)
    methods = cold.io_methods(bench)
    _describe(bench, indexes, settings)
    served = []
    for method in bench.track(methods):
        chosen = {**settings, **({"io_method": method} if method else {})}
        for _, queries in bench.track([group for group in _groups(bench, table) if group[0] in parts]):
            served += cold_query.measure(bench, indexes, queries, chosen, method, may_evict=True)
    bench.add_table("How the extension served cold samples", cold_query.served_rows(served))


def _describe(bench, indexes, settings):
    """Restarts with cold caches, and asks the disk."""
    relations = {INDEX: indexes.names()[0], TABLE: indexes.table}
    cold.cold_restart(bench, relations.values(), settings)
    disk = cold.disk_rows(bench, {f"the disk, reading {' and '.join(which)}": [relations[one] for one in which]
                                  for which in READS})
    bench.add_table("Cold samples", [["", ""], *disk, *cold.description(bench)])


def _groups(bench, table):
    """(part, queries that are to agree)"""
    options = bench.options
    for what, (title, node_type, columns, sums) in WHAT.items():
        for suffix, state, warm in STATES[what]:
            common = {"node_type": node_type, "sums": sums, "warm": warm, "again": False}
            for order in ORDERS:
                yield "cold-joins", [ColdQuery(
                    f"cold_join_{what}_{order}_{suffix}", f"cold: join {title}, {order}, {state}", "µs a probe",
                    options.cold_probes, "pages a probe", options.cold_probes, _join_sql(table, order, columns), 0, 1,
                    **common)]
            keys = options.cold_lists * options.list_keys
            yield "cold-lists", [ColdQuery(
                f"cold_list_{what}_{suffix}", f"cold: = ANY with {options.list_keys:,} keys, {title}, {state}",
                "µs a key", keys, "pages a key", keys,
                lambda first, last, what=columns: lists.sql(table, first, last, what), options.lists,
                options.cold_lists, **common)]
    yield "cold-range", list(_ranges(options, table))
    for rows in LIMITS:
        key, count = f"cold_limit_{rows}", options.cold_statements
        each.make_function(bench, key, limit_sql(table, rows))
        yield "cold-limits", [ColdStatements(
            key, f"cold: ORDER BY ... LIMIT {rows}", "µs a statement", count, "pages a statement", count,
            lambda first, last, key=key: f"SELECT {key}({first}, {last})", 0, count, node_type="Index Scan", sums=None,
            again=False, in_function=limit_sql(table, rows))]


@dataclasses.dataclass
class ColdStatements(ColdQuery):
    """A statement for each question, in a function."""

    in_function: str = ""

    def check_plan(self, connection, index, _statement):
        each.check_plan(connection, self.in_function, index, self.node_type)

    def answer(self, _connection, _numbers):
        """The function's result is one."""


def limit_sql(table, rows):
    return f"SELECT sum(v) FROM (SELECT v FROM {table} WHERE k >= {{k}} ORDER BY k LIMIT {rows}) AS s"


def _join_sql(table, order, columns):
    return lambda number, _last, what=columns: (
        f"SELECT {what} FROM {_probes(order, number)} AS p JOIN {table} AS s ON s.k = p.k")


def _ranges(options, table):
    """One range a sample, by the index and by a bitmap."""
    draw = random.Random(SEED)
    part, width = load.KEY_SPACE // options.cold_rounds, load.KEY_SPACE // options.rows * options.range_rows
    lows = [number * part + draw.randrange(part - width + 1) - load.KEY_SPACE // 2
            for number in range(options.cold_rounds)]
    statement = lambda number, _last, what="sum(s.v)": (  # noqa: E731
        f"SELECT {what} FROM {table} AS s WHERE s.k BETWEEN {lows[number]} AND {lows[number] + width - 1}")
    title = f"cold: range of {options.range_rows:,} rows"
    common = {"unit": "ms a range", "per": 1000, "pages_unit": "pages a range", "pages_per": 1, "first": 0, "count": 1,
              "statement": statement, "sums": "count(*), sum(s.v)", "again": False}
    yield ColdQuery("cold_range", title, node_type="Index Scan", **common)
    yield ColdQuery("cold_range_bitmap", f"{title}, bitmap scan", node_type="Bitmap Index Scan", settings=BY_BITMAP,
                    **common)

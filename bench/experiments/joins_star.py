"""The star part of bench/joins: a fact table, four dimensions, and the planner as free as it is by default.

Tables are pgbench's, with customers besides and foreign keys: history refers to accounts, customers, tellers and
branches.  btree and served are sessions of their own, in which learnedbtree.btree_indexes alone differs.
"""

import contextlib
from statistics import median

from harness import load
from harness.contenders import BASELINE, BTREE_INDEXES
from harness.measure import Failed, WrongAnswer, apply_settings, explain, microseconds_taken, plan_nodes

from .ahead import NODE

FACT = "history"
SHARES = {"accounts": 1, "customers": 2, "tellers": 10, "branches": 100}  # one row for so many of the fact table's
BYTES = {FACT: 72 + 23 + 23, "accounts": 136 + 23, "customers": 64 + 23, "tellers": 48 + 23, "branches": 48 + 23}
MIN_ROWS = 10_000
SAMPLE_ROWS, MOST_EXECUTIONS = 10_000, 50  # of a query in a sample: short ones are executed several times
JOINS = {"Nested Loop": "loop", "Hash Join": "hash", "Merge Join": "merge"}
SESSIONS = {BASELINE: "none", "served": "all"}
BEGIN = "timestamptz '2026-01-01 00:00:00+00'"  # an entry a second

TABLES = {
    "branches": ("bid int4 PRIMARY KEY, bbalance int4, region int4", "i, {draw} % 100000, i % 20"),
    "tellers": ("tid int4 PRIMARY KEY, bid int4, tbalance int4", "i, i % {branches} + 1, {draw} % 10000"),
    "customers": ("cid int8 PRIMARY KEY, credit int4, name text", "i, {draw} % 5000, 'customer ' || i"),
    "accounts": ("aid int8 PRIMARY KEY, bid int4, abalance int4, filler char(84)",
                 "i, i % {branches} + 1, {draw} % 100000, ''"),
    FACT: ("hid int8 PRIMARY KEY, aid int8, cid int8, tid int4, bid int4, delta int4, mtime timestamptz",
           "i, {draw} % {accounts} + 1, {draw} / 11 % {customers} + 1, {draw} / 101 % {tellers} + 1, "
           "{draw} / 1009 % {branches} + 1, {draw} % 1001 - 500, {begin} + i * interval '1 second'"),
}

REFERENCES = {"aid": "accounts", "cid": "customers", "tid": "tellers", "bid": "branches"}

QUERY = """SELECT b.region, count(*), sum(h.delta), sum(a.abalance), sum(c.credit), max(t.tbalance), sum(b.bbalance)
  FROM history h JOIN accounts a ON a.aid = h.aid JOIN customers c ON c.cid = h.cid
  JOIN tellers t ON t.tid = h.tid JOIN branches b ON b.bid = h.bid
 WHERE h.mtime >= {first} AND h.mtime < {last} GROUP BY b.region ORDER BY b.region"""


def add_options(parser):
    parser.add_argument("--star-rows", type=int, metavar="N", help="rows of the star's fact table (default: rows / 5)")
    parser.add_argument("--shares", default="0.01,0.1,1,10,100", metavar="LIST",
                        help="share of the fact table that the star's filter lets through, %%")
    parser.add_argument("--page-costs", default="4/1,1.1/1", metavar="LIST",
                        help="random_page_cost/seq_page_cost of the star joins")


def check_options(options):
    try:
        options.shares = sorted({float(share) for share in options.shares.split(",")})
    except ValueError:
        options.shares = []
    if not options.shares or not all(0 < share <= 100 for share in options.shares):
        raise SystemExit("bench: --shares wants percentages above 0 and up to 100, comma-separated")
    if options.star_rows < MIN_ROWS:
        raise SystemExit(f"bench: --star-rows must be at least {MIN_ROWS}")


def bytes_needed(options):
    return sum(options.star_rows // share * BYTES[table] for table, share in {FACT: 1, **SHARES}.items())


def measure(bench):
    _load(bench)
    with contextlib.ExitStack() as opened:
        sessions = {name: opened.enter_context(contextlib.closing(bench.server.connect())) for name in SESSIONS}
        for name, session in sessions.items():
            apply_settings(session, {BTREE_INDEXES: SESSIONS[name]})
        _check_and_train(bench, sessions)
        rows = [["filter", "random / seq_page_cost", "rows of history", "btree: plan", "ms", "served: plan", "ms",
                 "speed-up", "lookups by models"]]
        for costs in bench.options.costs:
            points = {name: [] for name in SESSIONS}
            for share in bench.options.shares:
                row, times = _one(bench, sessions, share, costs)
                rows.append(row)
                for name in SESSIONS:
                    points[name].append((share, times[name]))
            bench.add_chart(f"Time of a star join by rows of the fact table (random_page_cost {costs[0]:g}, "
                            f"seq_page_cost {costs[1]:g})", "share of the fact table, %", "ms a query", points, log_x=True, log_y=True)
        bench.add_table("Star joins, the planner free to choose", rows)


# ---- tables ----

def _load(bench):
    rows = {FACT: bench.options.star_rows,
            **{table: bench.options.star_rows // share for table, share in SHARES.items()}}
    words = {**rows, "begin": BEGIN, "draw": f"({load.key_of('i')} & {load.INT8_MAX})"}
    for table, (columns, values) in TABLES.items():
        load.fill(bench, table, columns, f"SELECT {values.format(**words)} FROM generate_series(1, {rows[table]}) AS i")
        bench.say(f"loaded {rows[table]:,} rows of {table}")
    for column, table in REFERENCES.items():  # after the rows: a trigger a row would take as long as all the rest
        bench.connection.execute(f"ALTER TABLE {FACT} ADD FOREIGN KEY ({column}) REFERENCES {table}")
    bench.connection.execute(f"CREATE INDEX {FACT}_mtime ON {FACT} (mtime)")
    load.prewarm(bench, [*TABLES, *(f"{table}_pkey" for table in TABLES), f"{FACT}_mtime"])
    bench.connection.execute("CHECKPOINT")


def _check_and_train(bench, sessions):
    """Raise Failed unless one session serves and the other does not; train models for the indexes served."""
    for name, session in sessions.items():
        found = session.execute("SELECT indexname FROM learnedbtree_indexes WHERE served").fetchall()
        served = [index for index, in found]
        if (f"accounts_pkey" in served) != (name != BASELINE):
            raise Failed(f"the session of {name} serves {', '.join(served) or 'no index'}")
        for index in served:
            session.execute("SELECT learnedbtree_train(%s::regclass)", [index])
            state, reason = session.execute("SELECT state, reason FROM learnedbtree_model(%s::regclass)",
                                            [index]).fetchone()
            if state != "ready":
                raise Failed(f"{index} has no model: {state}, {reason}")
        bench.say(f"{name}: serves {', '.join(served) or 'no index'}")


# ---- queries ----

def _one(bench, sessions, share, costs):
    """One filter and page costs: (row of the table, median ms by session)."""
    rows = bench.options.star_rows
    wanted = max(round(rows * share / 100), 1)
    before = (rows - wanted) // 2
    moment = "{begin} + {seconds} * interval '1 second'"
    sql = QUERY.format(first=moment.format(begin=BEGIN, seconds=before + 1),
                       last=moment.format(begin=BEGIN, seconds=before + wanted + 1))
    executions = min(max(SAMPLE_ROWS // wanted, 1), MOST_EXECUTIONS)
    times = {name: [] for name in sessions}
    plans, lookups = {}, {}
    for number in range(-1, bench.options.rounds):  # round -1 is the warm-up
        answers = {}
        for name in bench.in_turn(list(sessions), max(number, 0)):
            apply_settings(sessions[name], {"random_page_cost": costs[0], "seq_page_cost": costs[1]})
            plan = explain(sessions[name], sql)
            counted = _lookups(sessions[name])
            taken = [microseconds_taken(bench)(sessions[name], sql) for _ in range(executions)]
            lookups[name] = (_lookups(sessions[name]) - counted) // executions
            answers[name] = taken[-1][1]
            plans[name] = in_words(plan)
            _check_asked(name, plan, lookups[name])
            if number >= 0:
                times[name].append(sum(microseconds for microseconds, _ in taken) / 1000 / executions)
        if answers[BASELINE] != answers["served"] or sum(row[1] for row in answers[BASELINE]) != wanted:
            raise WrongAnswer(f"star join of {wanted} rows: {answers}")
    key, cost = f"star_{share:g}_{costs[0]:g}_{costs[1]:g}", f"{costs[0]:g}/{costs[1]:g}"
    bench.add_result(key, f"star join, {share:g} % of the fact table, page costs {cost}", "ms a query", times)
    medians = {name: median(values) for name, values in times.items()}
    bench.say(f"star join, {share:g} %, {cost}: " + ", ".join(
        f"{name} {medians[name]:.3g} ms ({plans[name]})" for name in sessions))
    return [f"{share:g} %", cost, wanted, plans[BASELINE], medians[BASELINE], plans["served"], medians["served"],
            f"{medians[BASELINE] / medians['served']:.2f}×", lookups["served"]], medians


def _lookups(session):
    session.execute("SELECT pg_stat_force_next_flush()")
    return session.execute("SELECT coalesce(sum(lookups), 0)::int8 FROM learnedbtree_stat").fetchone()[0]


def _check_asked(name, plan, lookups):
    """By the counters: models are asked in the one session alone, and there by each loop over accounts."""
    loops = any(relation == "accounts" and way.startswith("loop") for relation, way in joined(plan))
    if lookups and name == BASELINE or name != BASELINE and loops and not lookups:
        raise Failed(f"the session of {name} asked models for {lookups} lookups: {in_words(plan)}")


def joined(node, way=None):
    """(relation, how it is joined) of each table of a plan: by the join nearest to it."""
    if kind := JOINS.get(node["Node Type"]):
        ahead = any(child.get("Custom Plan Provider") == NODE for child in node["Plans"])
        way = kind + " ahead" * ahead
    if "Relation Name" in node:
        yield node["Relation Name"], way
    for child in node.get("Plans", ()):
        yield from joined(child, way)


def in_words(plan):
    """The dimensions by how they are joined, and how the fact table is read."""
    ways = {}
    for relation, way in joined(plan):
        if relation != FACT:
            ways.setdefault(way, []).append(relation)
    fact = next(node["Node Type"] for node in plan_nodes(plan) if node.get("Relation Name") == FACT
                or node.get("Index Name") == f"{FACT}_mtime")
    return "; ".join([fact.lower(), *(f"{way}: {', '.join(relations)}" for way, relations in ways.items())])

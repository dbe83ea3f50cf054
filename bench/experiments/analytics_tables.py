"""What the report of bench/analytics shows: each query, totals, how many plans and answers are the same, conditions."""

import math
from statistics import median

from harness.contenders import BASELINE

SHORT_MS = 3000  # what takes longer outweighs all others in a sum
LOWEST = 5
SHOWN = ("shared_buffers", "huge_pages_status", "work_mem", "effective_cache_size", "max_parallel_workers_per_gather",
         "jit", "effective_io_concurrency", "io_method", "io_workers", "seq_page_cost", "default_statistics_target",
         "learnedbtree.min_leaves", "learnedbtree.lookahead_rows")
QUERIES_HEAD = ["query", "none, ms", "all, ms", "ratio", "rounds", "spread, none", "spread, all", "plan", "our nodes",
                "answers"]
TOTALS_HEAD = ["set, page cost", "queries", "number", "none, s", "all, s", "ratio of sums", "geometric mean",
               "lowest ratios"]
COMPARED_HEAD = ["set, page cost", "queries", "plans the same", "plans with our nodes", "answers the same",
                 "left out, too slow", "plans not the same"]
PARTS = {  # rows of the totals
    "all": lambda query: True,
    f"under {SHORT_MS // 1000} s": lambda query: median(query.ms[BASELINE]) < SHORT_MS,
    "with our nodes": lambda query: query.nodes > 0,
    "without our nodes": lambda query: query.nodes == 0,
}


def conditions(bench, data, served, models):
    """Rows on what the set was measured with."""
    setting = lambda name: bench.connection.execute(  # noqa: E731
        "SELECT current_setting(%s, true)", [name]).fetchone()[0]
    size = bench.connection.execute("SELECT pg_database_size(current_database())").fetchone()[0]
    rows = bench.connection.execute("SELECT sum(reltuples)::int8 FROM pg_class WHERE relkind = 'r' AND relnamespace = "
                                    "'public'::regnamespace").fetchone()[0]
    caches = "shared_buffers and the system's cache emptied before each execution" if bench.options.cold else \
        "prewarmed, as far as shared_buffers have room"
    return [["", ""], ["scale", f"{data.scale:g}"], ["rows", rows], ["database, MB", round(size / 1e6)],
            ["indexes served, with models", f"{served}, {models}"], ["caches", caches],
            ["time", "CPU time of the backend" if bench.options.cpu_time and not bench.options.cold
             else "of the client, until all rows are there"],
            *([name, setting(name)] for name in SHOWN if setting(name) is not None)]


def add_run(bench, key, what, run, totals, compared):
    """The tables and sums of one run; `totals` and `compared` get further rows."""
    if run.found:
        bench.add_table(what, [QUERIES_HEAD, *map(_query_row, run.found)])
        for words, belongs in PARTS.items():
            if chosen := [query for query in run.found if belongs(query)]:
                totals.append([what, words, *_total(chosen)])
                if words in list(PARTS)[:2]:
                    bench.add_result(f"{key}_{words.split()[0]}", f"{what}: sum of {len(chosen)} queries, {words}", "s",
                                     {way: [_sum(chosen, way)] for way in (BASELINE, "served")})
    if run.found or run.left_out:
        _add_compared(what, run, sum(query.same_answers for query in run.found), compared)


def add_plans(what, run, compared):
    """The same of plans that were compared without being executed."""
    if run.found:
        _add_compared(what, run, "–", compared)


def _add_compared(what, run, same_answers, compared):
    same = sum(query.plan == "same" for query in run.found)
    compared.append([what, len(run.found), same, sum(query.nodes > 0 for query in run.found), same_answers,
                     ", ".join(run.left_out) or "–",
                     ", ".join(query.name for query in run.found if query.plan != "same") or "–"])


def _query_row(query):
    spread = lambda values: f"{min(values):.4g} – {max(values):.4g}"  # noqa: E731
    none, served = query.ms[BASELINE], query.ms["served"]
    return [query.name, median(none), median(served), f"{query.ratio:.3f}×" + " (no node)" * (not query.nodes),
            len(none), spread(none), spread(served), query.plan, query.nodes, "same" if query.same_answers else "differ"]


def _total(queries):
    none, served = (_sum(queries, way) for way in (BASELINE, "served"))
    mean = math.exp(sum(math.log(query.ratio) for query in queries) / len(queries))
    lowest = sorted(queries, key=lambda query: query.ratio)[:LOWEST]
    return [len(queries), none, served, f"{none / served:.3f}×", f"{mean:.3f}×",
            ", ".join(f"{query.name}: {query.ratio:.2f}" for query in lowest)]


def _sum(queries, way):
    """Of the medians, in seconds."""
    return sum(median(query.ms[way]) for query in queries) / 1000

"""What is asked of cold indexes: arrays of keys, ranges in all directions, the first rows from a key on.

Arrays and ranges lie in tables, numbered.
"""

from harness import lists
from harness.cold_query import BY_BITMAP, ColdQuery

RANGES = "wanted_ranges"  # (n int4, lo int8, hi int8)
FIRST_ROWS = 10  # of LIMIT


def range_sql(inner, first, last, what="count(s.k)"):
    return (f"SELECT {what} FROM {RANGES} AS r CROSS JOIN LATERAL ({inner}) AS s "
            f"WHERE r.n BETWEEN {first} AND {last}")


def kinds(options, array_table, range_table):
    """Every kind of cold query: (its table, query)."""
    keys = options.cold_arrays * options.array_keys
    rows = f"SELECT k FROM {range_table} AS g WHERE g.k BETWEEN r.lo AND r.hi ORDER BY k"
    arrays = lambda first, last, what="count(s.k)": lists.sql(array_table, first, last, what)  # noqa: E731
    ranges = lambda inner: (  # noqa: E731
        lambda first, last, what="count(s.k)": range_sql(inner, first, last, what))
    starts = options.cold_rounds * options.ranges  # behind the ranges
    if "cold-arrays" in options.parts:
        yield array_table, ColdQuery(
            "cold_array", f"cold: = ANY with {options.array_keys:,} keys", "µs a key", keys, "pages a key", keys,
            arrays, options.arrays, options.cold_arrays)
    if "cold-ranges" not in options.parts:
        return
    of_rows = f"{options.range_rows:,} rows"
    common = {"unit": "ms a range", "per": options.ranges * 1000, "pages_unit": "pages a range",
              "pages_per": options.ranges, "first": 0, "count": options.ranges}
    yield range_table, ColdQuery("cold_range", f"cold: range of {of_rows}, index only", **common,
                                 statement=ranges(f"{rows} OFFSET 0"))
    yield range_table, ColdQuery("cold_range_backward", f"cold: range of {of_rows}, index only, backward", **common,
                                 statement=ranges(f"{rows} DESC OFFSET 0"), backward=True)
    yield range_table, ColdQuery(
        "cold_bitmap", f"cold: range of {of_rows}, bitmap and one row", **common, node_type="Bitmap Index Scan",
        settings=BY_BITMAP, sums=None,
        statement=ranges(f"SELECT v AS k FROM {range_table} AS g WHERE g.k BETWEEN r.lo AND r.hi LIMIT 1"))
    yield range_table, ColdQuery(
        "cold_limit", f"cold: the first {FIRST_ROWS} rows from a key on", "µs a query", options.starts,
        "pages a query", options.starts,
        ranges(f"SELECT k FROM {range_table} AS g WHERE g.k >= r.lo ORDER BY k LIMIT {FIRST_ROWS}"),
        starts, options.starts)

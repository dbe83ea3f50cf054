"""What the pictures are made of: the model, read once, and the counters, read again and again."""

import dataclasses
import datetime
import time

from psycopg.rows import dict_row

from harness.contenders import EXTENSION
from harness.measure import Failed

MIN_LEAVES = 10
SIGN = 2**63  # of codes that are single signed numbers
EPOCH = datetime.datetime(2000, 1, 1)
CALENDAR = (datetime.datetime(2, 1, 1), datetime.datetime(9998, 1, 1))  # a year of room for charts
INTEGERS = ("smallint", "integer", "bigint")
TIMES = ("timestamp without time zone", "timestamp with time zone")


@dataclasses.dataclass
class Model:
    measures: dict  # the row of learnedbtree_model()
    buckets: list  # dicts of equally many leaves each, in key order; errors are of the leaves that do not tie
    knots: list  # (code, slot)
    column: tuple  # name and type, where a key is one ascending column

    def keys(self, codes):
        """Codes as what they stand for, where a code is a single number; and the name of that."""
        name, kind = self.column
        if kind in INTEGERS:
            return [int(code) - SIGN for code in codes], f"{name} ({kind})"
        if kind in TIMES:
            return [_time(int(code) - SIGN) for code in codes], f"{name} (time)"
        return [float(code) for code in codes], "key code"


def _time(microseconds):
    """Of the server's timestamps; what the calendar here does not have lies at its ends."""
    first, last = ((end - EPOCH) // datetime.timedelta(microseconds=1) for end in CALENDAR)
    return EPOCH + datetime.timedelta(microseconds=min(max(microseconds, first), last))


def read_model(connection, index, points):
    """The model in at most `points` buckets, one a leaf if there are no more leaves than that."""
    if not connection.execute("SELECT FROM pg_extension WHERE extname = %s", [EXTENSION]).fetchall():
        raise Failed(f"{EXTENSION} is not installed in this database")
    # The worker may train between two of the statements: once more, then.
    for _ in range(5):
        measures = _rows(connection, f"SELECT * FROM {EXTENSION}_model(%s)", [index])[0]
        if measures["state"] != "ready":
            raise Failed(f"{index} has no model to draw: {measures['state']}, {measures['reason']}")
        buckets = _rows(connection, f"""
            SELECT min(slot) AS first_slot, count(*) AS leaves, min(code) AS min_code, avg(error) AS mean_error,
                   max(error) AS max_error
              FROM {EXTENSION}_leaves(%s) GROUP BY slot * least(%s, %s) / %s ORDER BY 1""",
                        [index, points, measures["leaves"], measures["leaves"]])
        knots = [(int(code), slot) for code, slot in connection.execute(
            f"SELECT code, slot FROM {EXTENSION}_leaves(%s) WHERE knot ORDER BY slot", [index])]
        again = _rows(connection, f"SELECT * FROM {EXTENSION}_model(%s)", [index])[0]
        if measures["leaves"] < MIN_LEAVES:
            raise Failed(f"{index} has too few leaves to draw: {measures['leaves']}")
        if measures["trained_at"] == again["trained_at"] and buckets:
            return Model(measures, buckets, knots, _column(connection, index))
    raise Failed(f"{index} is trained faster than it can be read")


def _column(connection, index):
    found = connection.execute("""
        SELECT attname, format_type(atttypid, NULL) FROM pg_index JOIN pg_attribute ON attrelid = indexrelid AND attnum = 1
         WHERE indexrelid = %s::regclass AND indnkeyatts = 1 AND indoption[0] & 1 = 0""", [index]).fetchall()
    return found[0] if found else (None, None)


def _rows(connection, sql, parameters):
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(sql, parameters).fetchall()


def _counters(connection, index):
    return _rows(connection, f"SELECT * FROM {EXTENSION}_stat_get(%s::regclass)", [index])[0]


def watch(connection, index, seconds, every):
    """A dict for each interval: `at`, seconds since the beginning, `took`, and by how much each counter grew."""
    series = []
    began = time.monotonic()
    before_at, before = began, _counters(connection, index)
    while before_at - began < seconds:
        time.sleep(min(every, max(0, began + seconds - before_at)))
        now_at, now = time.monotonic(), _counters(connection, index)
        grown = {name: max(0, value - before[name]) for name, value in now.items()
                 if isinstance(value, int) and isinstance(before[name], int)}
        series.append({**grown, "at": now_at - began, "took": now_at - before_at})
        before_at, before = now_at, now
    return series

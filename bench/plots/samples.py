"""What the pictures are made of: the counters, read again and again."""

import time

from psycopg.rows import dict_row

from harness.contenders import EXTENSION


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

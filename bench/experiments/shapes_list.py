"""What bench/shapes measures: the tables, and a statement for each place where keys to come are known.

Most tables have `rows` rows, and random keys by rule (harness/load.py).  Indexes that are read leaf by leaf have grown
with their rows: neighbours in order are not so in the file, and nobody but the extension can read them ahead.  What a
sample asks for is a table of its own, `asked_N`: n from 1 on; k, a key that is there, and id, the number of its row;
fresh, a key that is not there; either, the one or the other by turns; device, one of `reading`.
"""

import dataclasses
from fractions import Fraction

from harness import load

LATENCY, COLD, MEMORY = WAYS = ("latency", "cold", "memory")
LOOK_AHEAD, LOOSE = "Learned Look-Ahead", "Learned Loose Scan"  # nodes of the plan
ICU_COLLATION = "en-US-x-icu"

PARTITIONS = 16
DEVICE_SHARE, DEVICE_ROWS = 500, 1_000  # devices: one in 500 rows; readings of each
EVENT_KINDS = 200
WIDE_SHARE = 20  # of the rows: one in 20 is wide
LIST = 50  # items of a list that each row has
PARENT_SHARE, CHILD_SHARE = 5, 2  # of the rows: one in 5 and 2 in 5
STEP = 611_953  # a prime: rows are asked for in no order, and none twice
WIDE = "repeat('w', 60)"
RANDOM = "abcdef"  # columns with an index each
COLUMNS = 40  # of wide rows, besides their key and the next one's


def random_columns(row):
    return ", ".join(f"hashint8extended({row}, {seed})" for seed, _ in enumerate(RANDOM, 11))


def word(row):
    return f"'key ' || md5(({row})::text)"


def family(parent, child, action, parents, children, step=1, key=False):
    """Tables as in tables(): parents, of which one in `step` has children; with key, these have a primary key, too."""
    return {
        parent: (25, [f"CREATE TABLE {parent} (id int8, w text)",
                      f"INSERT INTO {parent} SELECT i, {WIDE} FROM generate_series(1, {parents}) AS i",
                      f"ALTER TABLE {parent} ADD PRIMARY KEY (id)"]),
        child: (60, [f"CREATE TABLE {child} (id int8, parent int8, w text)",
                     f"INSERT INTO {child} SELECT i, {step} * {load.drawn_row('i', parents // step)}, {WIDE} "
                     f"FROM generate_series(1, {children}) AS i",
                     f"CREATE INDEX ON {child} (parent)",
                     *([f"ALTER TABLE {child} ADD PRIMARY KEY (id)"] if key else []),
                     f"ALTER TABLE {child} ADD FOREIGN KEY (parent) REFERENCES {parent} ON DELETE {action}"])}


def tables(rows):
    """{name: (bytes a row with its indexes, statements)}, in an order in which they can be made."""
    items = f"SELECT {load.key_of('i')}, {load.value_of('i')}, {WIDE} FROM generate_series(1::int8, {rows}) AS i"
    item = "(k int8 PRIMARY KEY, v int4 NOT NULL, w text)"
    parents, children = rows // PARENT_SHARE, rows * CHILD_SHARE // PARENT_SHARE
    devices = rows // DEVICE_SHARE
    return {
        "item": (150, [f"CREATE TABLE item {item}", f"INSERT INTO item {items}"]),
        "child": (1, ["CREATE TABLE child (n int8, item int8 REFERENCES item DEFERRABLE INITIALLY DEFERRED)"]),
        "child_now": (1, ["CREATE TABLE child_now (n int8, item int8 REFERENCES item)"]),
        "parted": (150, [f"CREATE TABLE parted {item} PARTITION BY HASH (k)",
                         *(f"CREATE TABLE parted_{number} PARTITION OF parted "
                           f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})" for number in range(PARTITIONS)),
                         f"INSERT INTO parted {items}"]),
        "six": (280, [f"CREATE TABLE six (id int8, {', '.join(f'{name} int8' for name in RANDOM)})",
                      f"INSERT INTO six SELECT i, {random_columns('i')} FROM generate_series(1::int8, {rows}) AS i",
                      "ALTER TABLE six ADD PRIMARY KEY (id)", *(f"CREATE INDEX ON six ({name})" for name in RANDOM)]),
        **family("parent", "kid", "CASCADE", parents, children, key=True),
        **family("parent_set", "kid_set", "SET NULL", parents, children),
        **family("parent_kept", "kid_kept", "NO ACTION", parents, children, step=2),
        "reading": (300, ["CREATE TABLE reading (device int4 NOT NULL, at int8 NOT NULL, v int4 NOT NULL, w text)",
                          "CREATE INDEX ON reading (device, at)",
                          f"INSERT INTO reading SELECT 1 + mod(i, {devices}), i / {devices}, {load.value_of('i')}, {WIDE} "
                          f"FROM generate_series(0, {devices * DEVICE_ROWS - 1}) AS i"]),
        "event": (120, ["CREATE TABLE event (kind int4 NOT NULL, v int4 NOT NULL, w text)",
                        "CREATE INDEX ON event (kind)",
                        f"INSERT INTO event SELECT {load.drawn_row('i', EVENT_KINDS)}, {load.value_of('i')}, {WIDE} "
                        f"FROM generate_series(1, {rows}) AS i"]),
        "wide": (14, [f"CREATE TABLE wide (id int4, next int4, {', '.join(f'c{n} int4' for n in range(COLUMNS))})",
                      f"INSERT INTO wide SELECT i, {load.drawn_row('i', rows // WIDE_SHARE)} "
                      f"{COLUMNS * ', i'} FROM generate_series(1, {rows // WIDE_SHARE}) AS i",
                      "ALTER TABLE wide ADD PRIMARY KEY (id)"]),
        "words": (170, [f'CREATE TABLE words (k text COLLATE "{ICU_COLLATION}" NOT NULL, v int4 NOT NULL)',
                        f"INSERT INTO words SELECT {word('i')}, {load.value_of('i')} FROM generate_series(1, {rows}) AS i",
                        "CREATE INDEX ON words (k)"])}


def asked_sql(first, count, rows):
    """A SELECT of what a sample asks for: so many rows, by numbers that no other has."""
    return (f"SELECT n, {load.key_of('id')} AS k, id, {load.key_of('new')} AS fresh, "
            f"{load.key_of('CASE WHEN mod(n, 2) = 0 THEN id ELSE new END')} AS either, "
            f"(1 + mod(id, {rows // DEVICE_SHARE}))::int4 AS device FROM "
            f"(SELECT j - {first} + 1 AS n, 1 + mod(j * {STEP}, {rows}) AS id, {rows} + j AS new "
            f"FROM generate_series({first}::int8, {first + count - 1}) AS j) AS s")


@dataclasses.dataclass(frozen=True)
class Shape:
    """A statement over {asked}, over a {list} of `keys` of it, or over rows from {first} to {last}, keys {low} to {high}."""

    name: str
    title: str
    tables: tuple
    statement: str
    ways: tuple = (LATENCY,)  # of running it where --only names nothing
    node: str | None = LOOK_AHEAD  # in the plan, if served
    share: Fraction = Fraction(1)  # of what is asked for
    keys: str = ""
    before: str = ""  # statements that are not timed
    writes: tuple = ()  # tables that it changes


_ON_DISK, _ALL = (LATENCY, COLD), WAYS
_INSERTED = f"fresh, 7, {WIDE} FROM {{asked}}"
_UPSERTED = f"either, 7, {WIDE} FROM {{asked}} ON CONFLICT (k) DO UPDATE SET v = excluded.v"
_LOOP = "DO $$ DECLARE r record; BEGIN FOR r IN SELECT id FROM {{asked}} WHERE n <= {{count}} LOOP {}; END LOOP; END $$"
_NEWEST = "SELECT {what} FROM reading WHERE device = a.device"
_THIRDS = f"generate_series(1::int8, {{rows}} / {PARENT_SHARE}, 3)"
_THIRD, _FIFTH, _FEW = Fraction(1, 3), Fraction(1, 5), Fraction(1, 60)

SHAPES = (  # those that only read come first: they find the tables as they were made
    Shape("join", "join with rows", ("item",), "SELECT count(*), sum(t.v) FROM {asked} AS a JOIN item AS t ON t.k = a.k",
          _ALL),
    Shape("list", "`= ANY` with rows", ("item",), "SELECT count(*), sum(v) FROM item WHERE k = ANY ({list})", node=None,
          keys="k"),
    Shape("range", "range with rows", ("item",), "SELECT count(*), sum(v) FROM item WHERE k BETWEEN {low} AND {high}",
          node=None),
    Shape("scalar", "scalar subquery", ("item",),
          "SELECT sum(v) FROM (SELECT (SELECT v FROM item WHERE k = a.k) AS v FROM {asked} AS a OFFSET 0) AS s", _ON_DISK),
    Shape("exists", "`EXISTS` as SubPlan, half of the keys exist", ("item",),
          "SELECT count(*) FROM {asked} AS a WHERE EXISTS (SELECT FROM item WHERE k = a.either OFFSET 0)", _ON_DISK),
    Shape("newest", "`LATERAL` newest row (`LIMIT 1`)", ("reading",),
          "SELECT count(*), sum(r.v) FROM {asked} AS a, LATERAL "
          f"({_NEWEST.format(what='v')} ORDER BY at DESC LIMIT 1) AS r", _ON_DISK),
    Shape("oldest", "`LATERAL` oldest row after a time", ("reading",),
          "SELECT count(*), sum(r.v) FROM {asked} AS a, LATERAL "
          f"({_NEWEST.format(what='v')} AND at >= 0 ORDER BY at LIMIT 1) AS r", _ON_DISK),
    Shape("max", "`LATERAL` `max()`", ("reading",),
          f"SELECT sum(r.at) FROM {{asked}} AS a, LATERAL ({_NEWEST.format(what='max(at) AS at')}) AS r", _ON_DISK),
    Shape("anti", "anti join, half of the keys exist", ("item",),
          "SELECT count(*) FROM {asked} AS a WHERE NOT EXISTS (SELECT FROM item AS t WHERE t.k = a.either AND t.v >= 0)"),
    Shape("join_parts", f"join with {PARTITIONS} partitions", ("parted",),
          "SELECT count(*), sum(t.v) FROM {asked} AS a JOIN parted AS t ON t.k = a.k", _ALL),
    Shape("list_parts", f"`= ANY` over {PARTITIONS} partitions", ("parted",),
          "SELECT count(*), sum(v) FROM parted WHERE k = ANY ({list})", (LATENCY, MEMORY), None, keys="k"),
    Shape("distinct", f"`DISTINCT`, {EVENT_KINDS} values", ("event",),
          "SELECT count(*), sum(kind) FROM (SELECT DISTINCT kind FROM event) AS s", node=LOOSE),
    Shape("count_distinct", f"`count(DISTINCT)`, `min()`, `max()`, {EVENT_KINDS} values", ("event",),
          "SELECT count(DISTINCT kind), min(kind), max(kind) FROM event", (MEMORY,), LOOSE),
    Shape("distinct_list", "`DISTINCT` of {count:,} in a list", ("reading",),
          "SELECT count(*), sum(device) FROM (SELECT DISTINCT device FROM reading WHERE device = ANY ({list})) AS s",
          (MEMORY,), LOOSE, _FEW, "device"),
    Shape("distinct_on_list", "`DISTINCT ON` of {count:,} in a list", ("reading",),
          "SELECT count(*), sum(at) FROM (SELECT DISTINCT ON (device) at FROM reading WHERE device = ANY ({list}) "
          "ORDER BY device DESC, at DESC) AS s", (MEMORY,), LOOSE, _FEW, "device"),
    Shape("group_list", "`max()` by `GROUP BY` of {count:,} in a list", ("reading",),
          "SELECT count(*), sum(at) FROM (SELECT max(at) AS at FROM reading WHERE device = ANY ({list}) GROUP BY device) "
          "AS s", (MEMORY,), LOOSE, _FEW, "device"),
    Shape("exists_list", f"`EXISTS` with a list of {LIST} for each row", ("reading",),
          "SELECT count(*) FROM {asked} AS a WHERE EXISTS (SELECT FROM reading WHERE device = ANY "
          f"(ARRAY[{', '.join(f'a.device + {more}' for more in range(LIST))}]) OFFSET 0)", (MEMORY,), None),
    Shape("list_within", f"join with a list of {LIST} in the next column", ("reading",),
          "SELECT count(*), sum(r.v) FROM {asked} AS a JOIN reading AS r ON r.device = a.device AND r.at = ANY "
          f"(ARRAY[{', '.join(str(at) for at in range(LIST))}])", (MEMORY,)),
    Shape("list_run", "`= ANY` of each third key of a table in order", ("parent",),
          f"SELECT count(*), sum(length(w)) FROM parent WHERE id = ANY (ARRAY(SELECT {_THIRDS}))", (COLD,), None),
    Shape("join_run", "join by each third key, in order, of a table in order", ("parent",),
          f"SELECT count(*), sum(length(t.w)) FROM {_THIRDS} AS n JOIN parent AS t ON t.id = n", (COLD,)),
    Shape("singles", "{count:,} joins of one row with another", ("parent", "kid"),
          _LOOP.format("PERFORM p.w FROM kid AS k JOIN parent AS p ON p.id = k.parent "
                       f"WHERE k.id = 1 + mod(r.id, {{rows}} * {CHILD_SHARE} / {PARENT_SHARE})"), (MEMORY,), None),
    Shape("singles_wide", f"{{count:,}} joins of three rows with five tables, of {COLUMNS + 2} columns", ("wide",),
          _LOOP.format("PERFORM sum(f.c39) FROM wide AS a JOIN wide AS b ON b.id = a.next JOIN wide AS c ON c.id = b.next "
                       "JOIN wide AS d ON d.id = c.next JOIN wide AS e ON e.id = d.next JOIN wide AS f ON f.id = e.next "
                       f"WHERE a.id = ANY (ARRAY[r.id / {WIDE_SHARE}, r.id / {2 * WIDE_SHARE}, r.id / {3 * WIDE_SHARE}])"),
          (MEMORY,), None, _THIRD),
    Shape("lists_near", f"{{count:,}} `= ANY` of {LIST} neighbours, index only", ("parent",),
          _LOOP.format("PERFORM count(*) FROM parent WHERE id = ANY "
                       f"(ARRAY[{', '.join(f'r.id / {PARENT_SHARE} + {more}' for more in range(LIST))}])"), (MEMORY,), None),
    Shape("list_icu", "`= ANY` with {count:,} texts, ICU, index only", ("words",),
          "SELECT count(*) FROM words WHERE k = ANY ({list})", (MEMORY,), None, 2 * _THIRD, word("id")),

    Shape("insert", "`INSERT ... SELECT`", ("item",), f"INSERT INTO item SELECT {_INSERTED}", _ON_DISK,
          writes=("item",)),
    Shape("insert_parts", f"`INSERT ... SELECT` into {PARTITIONS} partitions", ("parted",),
          f"INSERT INTO parted SELECT {_INSERTED}", _ON_DISK, writes=("parted",)),
    Shape("copy", "`COPY`", ("item",), "COPY item FROM '{file}'", node=None, writes=("item",)),
    Shape("insert_one", "{count:,} one-row `INSERT`s, six random indexes", ("six",),
          "DO $$ BEGIN FOR i IN {first}..{last} LOOP "
          f"INSERT INTO six VALUES ({{rows}} + i, {random_columns('{rows} + i')}); END LOOP; END $$",
          (LATENCY, MEMORY), None, _FIFTH, writes=("six",)),
    Shape("update_one", "{count:,} one-row `UPDATE`s, new entries in all indexes", ("six",),
          _LOOP.format("UPDATE six SET a = hashint8extended(id, 17) WHERE id = r.id"),
          (LATENCY, MEMORY), None, _FIFTH, writes=("six",)),
    Shape("update", "`UPDATE` of {count:,} rows, new entries in all indexes", ("six",),
          "UPDATE six SET a = hashint8extended(id, 17) WHERE id BETWEEN {first} AND {last}", (LATENCY, MEMORY),
          share=_THIRD, writes=("six",)),
    Shape("upsert", "`ON CONFLICT DO UPDATE`, half of the keys exist", ("item",), f"INSERT INTO item SELECT {_UPSERTED}",
          _ON_DISK, writes=("item",)),
    Shape("upsert_parts", f"`ON CONFLICT DO UPDATE` into {PARTITIONS} partitions", ("parted",),
          f"INSERT INTO parted SELECT {_UPSERTED}", (COLD,), writes=("parted",)),
    Shape("merge_parts", f"`MERGE` into {PARTITIONS} partitions, half of the keys exist", ("parted",),
          "MERGE INTO parted AS t USING {asked} AS a ON t.k = a.either WHEN MATCHED THEN UPDATE SET v = 7 "
          f"WHEN NOT MATCHED THEN INSERT VALUES (a.either, 7, {WIDE})", _ON_DISK, writes=("parted",)),
    Shape("update_parts", f"`UPDATE ... FROM` in {PARTITIONS} partitions", ("parted",),
          "UPDATE parted AS t SET v = 7 FROM {asked} AS a WHERE t.k = a.k", _ON_DISK, writes=("parted",)),
    Shape("deferred", "deferred foreign keys, at `COMMIT`", ("item", "child"), "COMMIT", _ON_DISK, None,
          before="BEGIN; INSERT INTO child SELECT n, k FROM {asked}", writes=("child",)),
    Shape("immediate", "immediate foreign keys", ("item", "child_now"), "INSERT INTO child_now SELECT n, k FROM {asked}",
          _ON_DISK, None, writes=("child_now",)),
    Shape("cascade", "`ON DELETE CASCADE`, {count:,} parents", ("parent", "kid"),
          "DELETE FROM parent WHERE id BETWEEN {first} AND {last}", _ON_DISK, None, 2 * _THIRD, writes=("parent", "kid")),
    Shape("set_null", "`ON DELETE SET NULL`, {count:,} parents", ("parent_set", "kid_set"),
          "DELETE FROM parent_set WHERE id BETWEEN {first} AND {last}", _ON_DISK, None, 2 * _THIRD,
          writes=("parent_set", "kid_set")),
    Shape("no_action", "`ON DELETE NO ACTION`, {count:,} parents without children", ("parent_kept", "kid_kept"),
          f"DELETE FROM parent_kept AS p USING (SELECT 1 + 2 * mod(id, {{rows}} / {2 * PARENT_SHARE}) AS id FROM {{asked}} "
          "WHERE n <= {count} OFFSET 0) AS a WHERE p.id = a.id", _ON_DISK, share=2 * _THIRD, writes=("parent_kept",)),
)

"""Statements that write many rows with random keys: into tables that are larger than memory, and in memory.

The tables are the same for all contenders, which are all a btree index: each sample begins with a restart, while which
the files are put back as they were (harness/saved.py).  A cold sample then has the inner pages of the indexes and the
source's rows in memory, and none of the leaves or of the tables' rows.
"""

import dataclasses
import itertools

from harness import cold, learned, load
from harness.contenders import BASELINE, KNOWN, check_served
from harness.measure import WrongAnswer, apply_settings, microseconds_taken, server_microseconds
from harness.reader import Reader
from harness.saved import Saved
from harness.twins import settings_of

BTREE = next(contender for contender in KNOWN if contender.name == BASELINE)
KEY, OTHER, THREE, CHILD, ASCENDING = "bulk_key", "bulk_other", "bulk_three", "bulk_child", "bulk_ascending"
SMALL, SMALL_ROWS = "bulk_small", 10_000  # of the reader beside
NOTHING = "nothing"  # a file without a row
FOLDER = "rows"  # in the cluster's folder, for files

BYTES_A_ROW = 480  # of all tables and their indexes, once leaves have split
MAX_WRITES, WRITES_SHARE = 20_000, 400  # of a cold statement, so that few leaves are read twice
ASCENDING_SHARE = 10  # that table begins with one of so many rows
BUFFERS_SHARE = 3  # shared_buffers when cold: one of so many bytes of the indexes
MIN_BUFFERS = 2 * 2**20
READ_SHARE = 0.1  # pages that a row may read in memory: before version 16, new ones count
IO_WORKERS = 32
ORDER_SEED = 13
VALUE = 5_000  # above those that tables begin with
SETTINGS = ("on", "off")
WAYS = ("buffered", "direct")

LOOKED_UP = 3  # per cent of the rows, before statements in memory: some five on each leaf


def uuid_of(kind, row):
    """SQL for a random uuid of a row number (SQL too)."""
    return f"md5('{kind}:' || {row})::uuid"


# What tables begin with, for row number i: (columns, SELECT list, secondary indexes).
TABLES = {KEY: ("k uuid, v int4", f"{uuid_of('k', 'i')}, {load.value_of('i')}", ()),
          OTHER: ("k uuid, v int4", f"{uuid_of('o', 'i')}, {load.value_of('i')}", ()),
          THREE: ("k uuid, a uuid, b int8, v int4",
                  f"{uuid_of('k', 'i')}, {uuid_of('a', 'i')}, {load.key_of('i')}, {load.value_of('i')}", ("a", "b")),
          ASCENDING: ("k int8, v int4", f"i, {load.value_of('i')}", ())}


@dataclasses.dataclass(frozen=True)
class Kind:
    """A statement that writes rows of a set: `columns` of the set, by COPY or else by INSERT ... SELECT."""

    key: str
    title: str
    table: str
    columns: str
    copy: bool = False
    loop: bool = False  # an INSERT for each row
    conflict: str = ""  # what to do about rows that are there; column c has half of them, k none
    merge: bool = False  # a MERGE, of rows half of which are there
    parents: tuple = ()
    cold: bool = True

    def tables(self):
        return (self.table, *self.parents)

    def indexes(self):
        return [index for table in self.tables() for index in indexes_of(table)]

    def new_rows(self, writes):
        """How many of so many rows are not in the table."""
        return writes - writes // 2 if self.columns.startswith("c, ") else writes

    def statement(self, folder, rows, none=False):
        """SQL that writes the rows of a set, or none of them."""
        if self.copy:
            return f"COPY {self.table} FROM '{folder / (NOTHING if none else f'{self.key}_{rows}')}'"
        source = f"SELECT {self.columns} FROM {rows}{' WHERE false' if none else ''}"
        if self.loop:
            return (f"DO $$ DECLARE r record; BEGIN FOR r IN {source} LOOP "
                    f"INSERT INTO {self.table} VALUES (r.{', r.'.join(self.columns.split(', '))}); "
                    f"END LOOP; END $$")
        if self.merge:
            return (f"MERGE INTO {self.table} t USING ({source}) s ON t.k = s.c "
                    f"WHEN NOT MATCHED THEN INSERT VALUES (s.{', s.'.join(self.columns.split(', '))})")
        return f"INSERT INTO {self.table} {source} {self.conflict}"


KINDS = (
    Kind("copy", "COPY", KEY, "k, v", copy=True),
    Kind("insert_select", "INSERT ... SELECT", KEY, "k, v"),
    Kind("do_nothing", "ON CONFLICT DO NOTHING", KEY, "c, v", conflict="ON CONFLICT (k) DO NOTHING"),
    Kind("nothing_new", "ON CONFLICT DO NOTHING, all rows new", KEY, "k, v", conflict="ON CONFLICT (k) DO NOTHING"),
    Kind("do_update", "ON CONFLICT DO UPDATE", KEY, "c, v",
         conflict="ON CONFLICT (k) DO UPDATE SET v = excluded.v"),
    Kind("merge", "MERGE, half of the rows new", KEY, "c, v", merge=True),
    Kind("three_select", "INSERT ... SELECT, three indexes", THREE, "k, a, b, v"),
    Kind("three", "COPY, three indexes", THREE, "k, a, b, v", copy=True),
    Kind("foreign", "INSERT ... SELECT, two foreign keys", CHILD, "fa, fb, v", parents=(KEY, OTHER)),
    Kind("foreign_copy", "COPY, two foreign keys", CHILD, "fa, fb, v", copy=True, parents=(KEY, OTHER)),
    Kind("one_row", "a statement a row", KEY, "k, v", loop=True, cold=False),
    Kind("ascending", "COPY, ascending keys", ASCENDING, "id, v", copy=True, cold=False),
    Kind("ascending_select", "INSERT ... SELECT, ascending keys", ASCENDING, "id, v", cold=False),
)


def indexes_of(table):
    if table not in TABLES:
        return []
    return [f"{table}_{BTREE.am}", *(f"{table}_{column}" for column in TABLES[table][2])]


def cold_set(number):
    """The table with the rows that a round writes."""
    return f"bulk_cold_{number}"


def warm_set(number):
    """... that a statement writes."""
    return f"bulk_warm_{number}"


# ---- options ----

def add_options(parser):
    parser.add_argument("--bulk-rows", type=int, metavar="N",
                        help="rows of the tables of bulk (default: rows, at most 2,000,000)")
    parser.add_argument("--bulk-writes", type=int, metavar="N",
                        help=f"rows that a cold statement of bulk writes (default: {MAX_WRITES:,}, "
                             f"at most rows / {WRITES_SHARE})")
    parser.add_argument("--bulk-warm-writes", type=int, default=20_000, metavar="N", help="... one in memory")
    parser.add_argument("--bulk-kinds", default=",".join(kind.key for kind in KINDS), metavar="LIST",
                        help="statements of bulk")
    parser.add_argument("--full-page-writes", default="off", metavar="LIST", help=f"of cold bulk: some of {','.join(SETTINGS)}")
    parser.add_argument("--io", default="buffered", metavar="LIST", help=f"of cold bulk: some of {','.join(WAYS)}")


def check_options(options):
    options.bulk_rows = options.bulk_rows or min(options.rows, 2_000_000)
    options.bulk_writes = options.bulk_writes or max(min(MAX_WRITES, options.bulk_rows // WRITES_SHARE), 2)
    if min(options.bulk_writes, options.bulk_warm_writes) < 2 or options.bulk_writes > options.bulk_rows \
            or options.bulk_warm_writes > options.bulk_rows:
        raise SystemExit("bench: --bulk-writes and --bulk-warm-writes must be at least 2, and at most --bulk-rows")
    options.bulk_kinds = _some("--bulk-kinds", options.bulk_kinds, [kind.key for kind in KINDS])
    options.full_page_writes = _some("--full-page-writes", options.full_page_writes, SETTINGS)
    options.io = _some("--io", options.io, WAYS)


def _some(option, listed, known):
    found = list(dict.fromkeys(part.strip() for part in listed.split(",") if part.strip()))
    if not found or not set(found) <= set(known):
        raise SystemExit(f"bench: {option} takes some of {','.join(known)}")
    return found


def bytes_needed(options):
    return options.bulk_rows * BYTES_A_ROW


# ---- the order of a run ----

class Bulk:
    def __init__(self, bench):
        self.bench = bench
        self.options = bench.options
        self.contenders = [contender for contender in bench.contenders if contender.am == BTREE.am]
        self.kinds = [kind for kind in KINDS if kind.key in self.options.bulk_kinds]
        self.folder = bench.server.folder / FOLDER
        self.sizes = {}  # of the indexes
        self.began_with = {}  # rows of a table
        self.served = []  # (title, {contender: counters})

    def run(self):
        left_out = [contender.name for contender in self.bench.contenders if contender not in self.contenders]
        if left_out:
            self.bench.warn(f"bulk is for contenders of one btree index: without {', '.join(left_out)}")
        if not self.contenders:
            return
        cold.warm_restart(self.bench)
        self._load()
        in_memory = dict(self.bench.server.settings)
        self._cold()
        self._warm({name: in_memory[name] for name in ("shared_buffers", "full_page_writes")})
        if any(by_contender for _, by_contender in self.served):
            self.bench.add_table("How the extension served bulk writes", self._served_rows())

    # ---- tables ----

    def _load(self):
        bench, rows = self.bench, self.options.bulk_rows
        tables = [table for table in TABLES if any(table in kind.tables() for kind in self.kinds)]
        for table in tables:
            columns, select, secondary = TABLES[table]
            self.began_with[table] = rows // ASCENDING_SHARE if table == ASCENDING else rows
            load.fill(bench, table, columns, f"SELECT {select} FROM generate_series(1::int8, {self.began_with[table]}) AS i")
            bench.connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT {indexes_of(table)[0]} PRIMARY KEY (k)")
            for column in secondary:
                bench.connection.execute(f"CREATE INDEX {table}_{column} ON {table} ({column})")
            bench.say(f"made {table}, {self.began_with[table]:,} rows")
        if any(kind.table == CHILD for kind in self.kinds):
            bench.connection.execute(f"CREATE TABLE {CHILD} (a uuid NOT NULL REFERENCES {KEY}, "
                                     f"b uuid NOT NULL REFERENCES {OTHER}, v int4)")
            self.began_with[CHILD] = 0
        load.fill(bench, SMALL, "k int8 PRIMARY KEY, v int4",
                  f"SELECT i, {load.value_of('i')} FROM generate_series(1::int8, {SMALL_ROWS}) AS i")
        self._load_sets()
        for index in itertools.chain(*map(indexes_of, tables)):
            self.sizes[index] = bench.connection.execute("SELECT pg_relation_size(%s::regclass)", [index]).fetchone()[0]
        self.saved = Saved(bench, [*self.began_with, *self.sizes])

    def _load_sets(self):
        """Rows to be written: of each cold round, and of each statement in memory, where they stay until the round ends."""
        options = self.options
        self.folder.mkdir()
        self.folder.chmod(0o777)
        for number in range(options.cold_rounds):
            self._load_set(cold_set(number), number, options.bulk_writes, [kind for kind in self.kinds if kind.cold])
        for number, (_, kind) in enumerate(itertools.product(range(options.rounds), self.kinds)):
            self._load_set(warm_set(number), number, options.bulk_warm_writes, [kind])
        self.bench.connection.execute(f"COPY (SELECT WHERE false) TO '{self.folder / NOTHING}'")
        self.bench.say("made the rows to be written")

    def _load_set(self, name, number, writes, kinds):
        load.fill(self.bench, name, "id int8, k uuid, c uuid, a uuid, b int8, fa uuid, fb uuid, v int4",
                  self._set_sql(number, writes))
        for kind in kinds:
            if kind.copy:
                self.bench.connection.execute(f"COPY (SELECT {kind.columns} FROM {name} ORDER BY id) "
                                              f"TO '{self.folder / f'{kind.key}_{name}'}'")

    def _set_sql(self, number, writes):
        """A SELECT of new rows; of column c, half of the keys are in the table, each in one row of the set."""
        rows = self.options.bulk_rows
        first, old = rows + number * writes + 1, writes // 2
        existing = f"(((place - 1) * {rows // old} + {number}) % {rows} + 1)"
        return (f"SELECT i, {uuid_of('k', 'i')}, "
                f"CASE WHEN place <= {old} THEN {uuid_of('k', existing)} ELSE {uuid_of('k', 'i')} END, "
                f"{uuid_of('a', 'i')}, {load.key_of('i')}, {uuid_of('k', load.drawn_row('i', rows))}, "
                f"{uuid_of('o', load.drawn_row('-i', rows))}, {load.value_of('i')} + {VALUE} FROM "
                f"(SELECT i, row_number() OVER (ORDER BY hashint8extended(i, {ORDER_SEED})) AS place "
                f"FROM generate_series({first}::int8, {first + writes - 1}) AS i) AS s ORDER BY i")

    # ---- cold ----

    def _cold(self):
        bench, options = self.bench, self.options
        kinds = [kind for kind in self.kinds if kind.cold]
        if not kinds:
            return
        ways = [way for way in options.io if way == "buffered" or cold.direct_io(bench)]
        if ways != options.io:
            bench.warn("there are no direct reads here: bulk is measured through the operating system's cache only")
        index = kinds[0].indexes()[0]
        rows = [["", ""], *cold.disk_rows(bench, {f"the disk, reading {index}": [index]})]
        for full, way, kind in bench.track(list(itertools.product(options.full_page_writes, ways, kinds))):
            further = {"full_page_writes": full, "shared_buffers": f"{self._buffers(kind) // 1024}kB"}
            settings = cold.sample_settings(bench, IO_WORKERS, **further)
            if cold.direct_io(bench):
                settings[cold.DIRECT_IO] = "data" if way == "direct" else ""
            self._cold_kind(kind, f"{full}_{way}", f"cold, full_page_writes {full}, {way}: {kind.title}", settings)
        rows += [[f"{kind.title}: shared_buffers, indexes", f"{self._buffers(kind) / 1e6:,.0f} MB, "
                  f"{sum(self.sizes[index] for index in kind.indexes()) / 1e6:,.0f} MB"] for kind in kinds]
        bench.add_table("Cold bulk writes",
                        rows + [row for row in cold.description(bench) if row[0] != "shared_buffers"])

    def _buffers(self, kind):
        return max(sum(self.sizes[index] for index in kind.indexes()) // BUFFERS_SHARE, MIN_BUFFERS)

    def _cold_kind(self, kind, suffix, title, settings):
        bench = self.bench
        names = [contender.name for contender in self.contenders]
        samples = {what: {name: [] for name in names} for what in ("rate", "pages", "table_pages", "p99")}
        served = {}
        for round_number in bench.track(range(self.options.cold_rounds)):
            answers = {}
            for contender in bench.in_turn(self.contenders, round_number):
                found, counts = self._cold_sample(kind, contender, round_number, settings)
                for what, value in found.items():
                    samples[what][contender.name].append(value)
                _add_up(served, contender, counts)
                answers[contender.name] = self._contents([kind.table], [kind], self.options.bulk_writes)
                if round_number == self.options.cold_rounds - 1:
                    self._check_indexes([kind.table])
            _check_answers(title, answers)
        key = f"bulk_{kind.key}_{suffix}"
        bench.add_result(key, title, "rows/s", samples["rate"], rate=True)
        bench.add_result(f"{key}_pages", f"{title}: index pages read", "a row", samples["pages"], timed=False)
        bench.add_result(f"{key}_table_pages", f"{title}: table pages read", "a row", samples["table_pages"], timed=False)
        bench.add_result(f"{key}_p99", f"{title}: p99 of a reader beside", "ms", samples["p99"])
        self.served.append((title, served))
        middle = lambda values: sorted(values)[len(values) // 2]  # noqa: E731
        bench.say(f"{title}: " + ", ".join(
            f"{name} {middle(samples['rate'][name]):,.0f} rows/s, {middle(samples['pages'][name]):.2f} pages a row"
            for name in names))

    def _cold_sample(self, kind, contender, number, settings):
        bench, rows = self.bench, self.options.bulk_writes
        cold.cold_restart(bench, [*kind.tables(), *kind.indexes()], settings, self.saved.put_back)
        self._use(kind.tables(), contender)
        for index in kind.indexes():
            cold.warm_inner_pages_of(bench, index, contender)
        load.prewarm(bench, kind.tables(), forks=("vm",))
        load.prewarm(bench, [cold_set(number), SMALL, f"{SMALL}_pkey"])
        bench.connection.execute(kind.statement(self.folder, cold_set(number), none=True))
        counted, before = self._counters(kind, contender), self._pages_read(kind)
        with Reader(bench, SMALL, SMALL_ROWS, dict(BTREE.settings)) as reader:
            microseconds, _ = server_microseconds(bench.connection, kind.statement(self.folder, cold_set(number)))
        table_pages, pages = (after - at_first for after, at_first in zip(self._pages_read(kind), before))
        now = self._counters(kind, contender)
        return ({"rate": rows / microseconds * 1e6, "pages": pages / rows, "table_pages": table_pages / rows,
                 "p99": reader.percentile(99)}, {name: now[name] - counted.get(name, 0) for name in now})

    def _use(self, tables, contender):
        """Apply the contender's settings, and see that they do what they are for."""
        apply_settings(self.bench.connection, settings_of(contender))
        for index in itertools.chain(*map(indexes_of, tables)):
            check_served(self.bench.connection, contender, index)

    def _pages_read(self, kind):
        """Pages of tables and of indexes that were not in shared_buffers, by the statistics of all processes."""
        self.bench.connection.execute("SELECT pg_stat_force_next_flush()")
        return self.bench.connection.execute(
            """SELECT sum(heap_blks_read)::int8, sum(coalesce(idx_blks_read, 0))::int8 FROM pg_statio_user_tables
               WHERE relname = ANY (%s)""", [list(kind.tables())]).fetchone()

    def _counters(self, kind, contender):
        """Of all the kind's indexes together."""
        found = {}
        if contender.has_model:
            for index in kind.indexes():
                _add(found, learned.counters(self.bench, index))
        return found

    # ---- in memory ----

    def _warm(self, settings):
        bench = self.bench
        tables = [table for table in self.began_with if any(table in kind.tables() for kind in self.kinds)]
        relations = [*tables, *itertools.chain(*map(indexes_of, tables))]
        samples = {kind.key: {contender.name: [] for contender in self.contenders} for kind in self.kinds}
        served = {kind.key: {} for kind in self.kinds}
        for round_number in bench.track(range(self.options.rounds)):
            answers = {}
            for contender in bench.in_turn(self.contenders, round_number):
                self._warm_restart(relations, settings)
                self._use(tables, contender)
                load.prewarm(bench, relations, forks=("main", "vm", "fsm"))
                if contender.has_model:
                    for index in itertools.chain(*map(indexes_of, tables)):
                        learned.train_and_check(bench, index)
                self._look_up(tables)
                for place, kind in enumerate(self.kinds):
                    microseconds, counts = self._warm_sample(kind, contender, round_number * len(self.kinds) + place)
                    samples[kind.key][contender.name].append(microseconds)
                    _add_up(served[kind.key], contender, counts)
                answers[contender.name] = self._contents(tables, self.kinds, self.options.bulk_warm_writes)
                if round_number == self.options.rounds - 1:
                    self._check_indexes(tables)
            _check_answers("bulk in memory", answers)
            bench.say(f"bulk in memory: round {round_number + 1}")
        for kind in self.kinds:
            title = f"in memory: {kind.title}"
            bench.add_result(f"bulk_{kind.key}_warm", title, "µs a row", samples[kind.key])
            self.served.append((title, served[kind.key]))

    def _warm_restart(self, relations, settings):
        files = cold.files_of(self.bench, relations)
        buffered = {cold.DIRECT_IO: ""} if cold.DIRECT_IO in self.bench.server.settings else {}
        cold.restart(self.bench, {**settings, **buffered}, lambda: self.saved.put_back(files))

    def _look_up(self, tables):
        """A few lookups on each leaf: an index that has just been restarted is in memory, but not in use."""
        self.bench.connection.execute("SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off")
        for table in (table for table in tables if table in TABLES):
            for column in ("k", *TABLES[table][2]):
                self.bench.connection.execute(f"SELECT count(*) FROM {table} AS s TABLESAMPLE BERNOULLI ({LOOKED_UP}) "
                                              f"JOIN {table} AS t USING ({column})")
        self.bench.connection.execute("RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_seqscan")

    def _warm_sample(self, kind, contender, number):
        bench = self.bench
        load.prewarm(bench, [warm_set(number)])
        bench.connection.execute(kind.statement(self.folder, warm_set(number), none=True))
        counted, before = self._counters(kind, contender), sum(self._pages_read(kind))
        microseconds, _ = microseconds_taken(bench)(bench.connection, kind.statement(self.folder, warm_set(number)))
        if (read := sum(self._pages_read(kind)) - before) > READ_SHARE * self.options.bulk_warm_writes:
            bench.warn(f"in memory: {kind.title}, {contender.name}: {read} pages were not in shared_buffers")
        now = self._counters(kind, contender)
        return microseconds / self.options.bulk_warm_writes, {name: now[name] - counted[name] for name in now}

    # ---- checks ----

    def _contents(self, tables, kinds, writes):
        """Number and hash of each table's rows, after statements of so many rows; raises WrongAnswer if the number is wrong."""
        found = []
        for table in tables:
            found.append(self.bench.connection.execute(
                f"SELECT count(*), sum(hash_record_extended(t, 0)) FROM {table} AS t").fetchone())
            wanted = self.began_with[table] + sum(kind.new_rows(writes) for kind in kinds if kind.table == table)
            if found[-1][0] != wanted:
                raise WrongAnswer(f"{table} should have {wanted:,} rows, but has {found[-1][0]:,}")
        return found

    def _check_indexes(self, tables):
        """amcheck: each index in order, and each row of its table in it."""
        self.bench.connection.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
        for index in itertools.chain(*map(indexes_of, tables)):
            self.bench.connection.execute("SELECT bt_index_check(%s::regclass, heapallindexed => true)", [index])

    def _served_rows(self):
        rows = [["", "inserts", "placed, %", "searches by the model", "verified, %", "leaves brought ahead"]]
        for title, by_contender in self.served:
            for name, counts in by_contender.items():
                inserts, lookups = counts["inserts"], counts["lookups"]
                rows.append([f"{title}: {name}", inserts, 100 * counts["inserts_placed"] / inserts if inserts else None,
                             lookups, 100 * counts["verified"] / lookups if lookups else None, counts["prefetched"]])
        return rows


def _add(sums, counts):
    for name, value in counts.items():
        sums[name] = sums.get(name, 0) + value


def _add_up(served, contender, counts):
    if counts:
        _add(served.setdefault(contender.name, {}), counts)


def _check_answers(title, answers):
    if len(set(map(repr, answers.values()))) > 1:
        raise WrongAnswer(f"{title}: the contenders disagree: {answers}")

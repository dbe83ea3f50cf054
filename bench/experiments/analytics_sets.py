"""The sets of bench/analytics: each a database of its own, made once in a cluster, and its queries."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

from harness import learned, load
from harness.contenders import create_extension
from harness.measure import Failed

from . import analytics_films as films

TITLES = {"tpch": "TPC-H", "tpcds": "TPC-DS", "job": "joins of films"}
ROWS = {"tpch": 8_660_000, "tpcds": 19_560_000, "job": 1_850_000}  # at scale 1, about
BYTES = {"tpch": 1_700_000_000, "tpcds": 3_200_000_000, "job": 400_000_000}  # with indexes
FETCH = pathlib.Path(__file__).resolve().parent.parent / "analytics_data" / "fetch"
FETCH_SECONDS = 3600
LOADING = "loading"  # the database that is being made; a complete one has another name
COPY_BYTES = 2**20

# Columns of primary keys.  Of TPC-DS's other tables the key is the first column.
KEYS = {
    "tpch": {"partsupp": ("ps_partkey", "ps_suppkey"), "lineitem": ("l_orderkey", "l_linenumber")},
    "tpcds": {"store_sales": ("ss_item_sk", "ss_ticket_number"), "store_returns": ("sr_item_sk", "sr_ticket_number"),
              "catalog_sales": ("cs_item_sk", "cs_order_number"), "catalog_returns": ("cr_item_sk", "cr_order_number"),
              "web_sales": ("ws_item_sk", "ws_order_number"), "web_returns": ("wr_item_sk", "wr_order_number"),
              "inventory": ("inv_date_sk", "inv_item_sk", "inv_warehouse_sk")},
}
# Foreign keys.  Those of TPC-DS have names that end in _sk; what a primary key begins with needs no other index.
REFERENCES = {"nation": ["n_regionkey"], "supplier": ["s_nationkey"], "customer": ["c_nationkey"],
              "partsupp": ["ps_suppkey"], "orders": ["o_custkey"],
              "lineitem": ["l_partkey, l_suppkey", "l_suppkey"]}


class DataSet:
    """One of the sets at a scale."""

    def __init__(self, name, scale):
        self.name = name
        self.scale = scale
        self.title = TITLES[name]
        self.database = f"{name}_{scale:g}".replace(".", "_").replace("-", "_")
        self.queries = {}  # name -> SQL

    def prepare(self, bench):
        """Have queries, and the data where they are files; raises SystemExit where these cannot be had."""
        if self.name == "job":
            self.queries = films.queries()
            return
        bench.say(f"{self.title} at scale {self.scale:g}: looking for its files, or making them")
        self.folder = pathlib.Path(_fetch(self.name, self.scale))
        described = json.loads((self.folder / "set.json").read_text(encoding="utf-8"))
        self.tables, self.queries = described["tables"], described["queries"]

    def load(self, bench):
        """Make the database unless the cluster has it."""
        if bench.connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [self.database]).fetchone():
            bench.say(f"{self.title}: {self.database} is there")
            return
        began = time.monotonic()
        bench.connection.execute(f"DROP DATABASE IF EXISTS {LOADING}")
        bench.connection.execute(f"CREATE DATABASE {LOADING}")
        with inside(bench, LOADING):
            if self.name == "job":
                films.load_all(bench, self.scale)
            else:
                for table in bench.track(self.tables):
                    self._load_table(bench, table)
        bench.connection.execute(f"ALTER DATABASE {LOADING} RENAME TO {self.database}")
        bench.connection.execute("CHECKPOINT")
        bench.say(f"{self.title} at scale {self.scale:g}: loaded in {time.monotonic() - began:.0f} s")

    def _load_table(self, bench, table):
        columns = self.tables[table]
        with load.loading(bench):
            bench.connection.execute(f"CREATE TABLE {table} ({', '.join(' '.join(column) for column in columns)})")
            with bench.connection.cursor() as cursor, open(self.folder / f"{table}.csv", "rb") as file, cursor.copy(
                    f"COPY {table} FROM STDIN (FORMAT csv, DELIMITER '|', NULL '\\N')") as copy:
                while part := file.read(COPY_BYTES):
                    copy.write(part)
        key = KEYS[self.name].get(table, (columns[0][0],))
        bench.connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({', '.join(key)})")
        for indexed in REFERENCES.get(table, []) if self.name == "tpch" else [
                name for name, _ in columns if name.endswith("_sk") and name != key[0]]:
            bench.connection.execute(f"CREATE INDEX ON {table} ({indexed})")
        load.settle(bench, table)
        rows = bench.connection.execute("SELECT reltuples::int8 FROM pg_class WHERE oid = %s::regclass", [table]).fetchone()[0]
        bench.say(f"{self.title}: loaded {rows:,} rows of {table}")


@contextlib.contextmanager
def inside(bench, database):
    """Meanwhile the session of `bench` is one in this database, with the extension of this build."""
    outside = bench.connection
    with contextlib.closing(bench.server.connect(database=database)) as bench.connection:
        try:
            create_extension(bench.connection)
            yield bench.connection
        finally:
            bench.connection = outside


def relations(connection):
    """Tables and indexes of the database, but for the system's."""
    return [name for name, in connection.execute(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace "
        "ORDER BY oid").fetchall()]


def train_all(bench):
    """Models for all indexes that the session serves; those that cannot have one are counted."""
    ready = 0
    served = [index for index, in bench.connection.execute(
        "SELECT format('%I.%I', schemaname, indexname) FROM learnedbtree_indexes WHERE served").fetchall()]
    if not served:
        raise Failed("no index is served")
    for index in served:
        ready += learned.train(bench, index)["state"] == "ready"
    bench.say(f"{len(served)} indexes are served, {ready} of them have models")
    return len(served), ready


def _fetch(name, scale):
    """The folder with the files of TPC-H or TPC-DS.  A process group of its own: it is to end when we do."""
    process = subprocess.Popen([FETCH, name, f"{scale:g}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=FETCH_SECONDS)
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise
    if process.returncode:
        raise SystemExit(f"bench: {TITLES[name]} could not be made: its generator is DuckDB's, from PyPI; "
                         "--sets job does without")
    return output.strip()

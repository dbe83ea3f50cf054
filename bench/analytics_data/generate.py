"""Make TPC-H or TPC-DS by DuckDB: generate.py tpch|tpcds SCALE FOLDER.

Into FOLDER go a CSV file for each table, and set.json with the tables' columns and the queries.
"""

import json
import pathlib
import sys

import duckdb

GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}
TYPES = {"VARCHAR": "text", "DECIMAL": "numeric"}  # in PostgreSQL's words; other names are the same


def main():
    name, scale, folder = sys.argv[1], float(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True)
    # On disk: what is generated may be larger than the memory that is free.
    connection = duckdb.connect(str(folder / "duckdb"))
    connection.execute(f"CALL {GENERATORS[name]}(sf={scale})")
    tables = {}
    for table, column, kind in connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "ORDER BY table_name, ordinal_position").fetchall():
        base, bracket, rest = kind.partition("(")
        tables.setdefault(table, []).append((column, TYPES.get(base, base.lower()) + bracket + rest))
    for table in tables:
        connection.execute(f"COPY {table} TO '{folder / table}.csv' (FORMAT CSV, HEADER false, DELIMITER '|', NULLSTR '\\N')")
    queries = {str(number): text.strip().rstrip(";") for number, text in connection.execute(
        f"SELECT query_nr, query FROM {name}_queries() ORDER BY query_nr").fetchall()}
    connection.close()
    for leftover in folder.glob("duckdb*"):
        leftover.unlink()
    (folder / "set.json").write_text(json.dumps({"tables": tables, "queries": queries}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

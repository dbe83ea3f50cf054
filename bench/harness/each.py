"""A statement for each question: a PL/pgSQL function runs it, so that every execution begins a scan of its own.

Questions are rows of a table, numbered: k a key that exists, v the other column of its row, hi a key so far above k
that a range of them has the rows asked for.  A statement names them as {k}, {v} and {hi}.
"""

import dataclasses

from . import load
from .measure import Query, check_prepared

TABLE = "questions"  # (n int4, k int8, v int4, hi int8)
PARAMETERS = {"k": "int8", "v": "int4", "hi": "int8"}


def make_questions(bench, rows, count, keys_a_range):
    """As many as `count`, from 0."""
    width = load.KEY_SPACE * keys_a_range // rows
    load.fill(bench, TABLE, "n int4 NOT NULL, k int8 NOT NULL, v int4 NOT NULL, hi int8 NOT NULL",
              f"SELECT n, k, {load.value_of('row')}, "
              f"CASE WHEN k > {load.INT8_MAX - width} THEN {load.INT8_MAX} ELSE k + {width} END "
              f"FROM (SELECT n, row, {load.key_of('row')} AS k FROM "
              f"(SELECT n, {load.drawn_row('n', rows)} AS row FROM generate_series(0, {count - 1}) AS n) AS r) AS q")
    load.prewarm(bench, [TABLE])


def make_function(bench, name, statement):
    """name(first, last): the sum of what the statement gives, a number for each question."""
    asked = statement.format(**{name: f"asked.{name}" for name in PARAMETERS}).replace(" FROM", " INTO found FROM", 1)
    bench.connection.execute(f"""
        CREATE OR REPLACE FUNCTION {name}(first int4, last int4) RETURNS numeric LANGUAGE plpgsql
        SET plan_cache_mode = force_generic_plan AS $$
        DECLARE
            asked record;
            found numeric;
            total numeric := 0;
        BEGIN
            FOR asked IN SELECT * FROM {TABLE} WHERE n BETWEEN first AND last LOOP
                {asked};
                total := total + found;
            END LOOP;
            RETURN total;
        END $$""")


def check_plan(connection, statement, index, node_type):
    numbered = statement.format(**{name: f"${number}" for number, name in enumerate(PARAMETERS, 1)})
    check_prepared(connection, numbered, index, node_type, ", ".join(PARAMETERS.values()), "1, 1, 1")


@dataclasses.dataclass
class Each(Query):
    """Time of a statement; the function is made at its first run."""

    unit: str = "µs a statement"
    statement: str = ""
    made = False

    def run(self, bench, indexes, contender, round_number):
        if not self.made:
            make_function(bench, self.key, self.statement)
            self.made = True
        self.sql = f"SELECT {self.key}(0, {self.per - 1})"
        return super().run(bench, indexes, contender, round_number)

    def check_plan(self, connection, indexes, contender):
        check_plan(connection, self.statement, contender.index_on(indexes.table), self.node_type(contender))

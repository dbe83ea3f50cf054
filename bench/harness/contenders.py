"""The contenders, and how one index alone is shown to the planner.

All indexes of a table stay built; of them the planner may see only the one
being measured.  Dropping the others is out of the question at 100 million
rows, so their `pg_index.indisvalid` is cleared, which a superuser may do in a
scratch server: the update invalidates the relcache entries of those indexes,
and the planner ignores an index that is not valid.  Every measurement checks
in the plan that the intended index is used.

`btree`, `served` and `served-plain` are one and the same btree index: the
session's settings are all that differs.
"""

import dataclasses

from .measure import Failed, apply_settings

EXTENSION = "learnedbtree"
BASELINE = "btree"


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    am: str  # access method; contenders of the same one share an index
    index_only: bool = True
    ranges: bool = True
    settings: tuple = ()  # (name, value): what sets it apart from another of the same index
    bytes_per_int8: int = 23  # size of an index entry, upper estimate
    shares: str | None = None  # the contender whose index it uses, where several can use one

    @property
    def builds(self):
        return self.shares is None

    @property
    def has_model(self):
        return (ENABLE, "on") in self.settings

    @property
    def needs_extension(self):
        return self.has_model or self.am == EXTENSION

    def index_on(self, table):
        return f"{table}_{self.am}"


ENABLE = f"{EXTENSION}.enable"
BTREE_INDEXES = f"{EXTENSION}.btree_indexes"
SERVED = ((ENABLE, "on"), (f"{EXTENSION}.min_leaves", "0"), (BTREE_INDEXES, "all"))
NOT_AHEAD = ((f"{EXTENSION}.lookahead_rows", "0"), (f"{EXTENSION}.enable_row_prefetch", "off"))

KNOWN = (
    Contender("btree", "btree", settings=((BTREE_INDEXES, "none"),)),
    Contender("served", "btree", settings=SERVED, shares="btree", bytes_per_int8=0),
    Contender("served-plain", "btree", settings=SERVED + NOT_AHEAD, shares="btree", bytes_per_int8=0),
    Contender("hash", "hash", index_only=False, ranges=False, bytes_per_int8=45),
    Contender("learnedbtree", EXTENSION, settings=((ENABLE, "on"),)),
    Contender("learnedbtree-off", EXTENSION, settings=((ENABLE, "off"),), shares="learnedbtree", bytes_per_int8=0),
)


def choose(names):
    """The contenders of a comma-separated list, in the order known here."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = set(wanted) - {contender.name for contender in KNOWN}
    if unknown or not wanted:
        known = ", ".join(contender.name for contender in KNOWN)
        named = ", ".join(sorted(unknown)) or "(none given)"
        raise SystemExit(f"bench: unknown contender {named}: choose from {known}")
    chosen = [contender for contender in KNOWN if contender.name in wanted]
    for contender in chosen:
        if contender.shares and contender.shares not in wanted:
            raise SystemExit(f"bench: {contender.name} uses the index that {contender.shares} builds: name both")
    return chosen


def judged(contenders):
    """The contender whose losses are reported: served, else learnedbtree; None where neither takes part."""
    return next((contender for contender in contenders if contender.has_model), None)


def create_extension(connection):
    """Of this build: a cluster that was kept has another's."""
    connection.execute(f"DROP EXTENSION IF EXISTS {EXTENSION}")
    connection.execute(f"CREATE EXTENSION {EXTENSION}")


def check_served(connection, contender, index):
    """Raise Failed if a btree index is not served that is to be: it would be measured as a btree."""
    if contender.has_model and contender.am != EXTENSION:
        served, reason = connection.execute(f"SELECT served, reason FROM {EXTENSION}_index_status(%s::regclass)",
                                            [index]).fetchone()
        if not served:
            raise Failed(f"{index} is not served: {reason}")


class Indexes:
    """One table with an index for every contender; btree's may be the table's primary key."""

    def __init__(self, table, columns, contenders, primary_key=False):
        self.table = table
        self.columns = columns
        self.contenders = contenders
        self.primary_key = primary_key

    def create_sql(self, contender, options=""):
        index = contender.index_on(self.table)
        if self._is_key(contender):
            return f"ALTER TABLE {self.table} ADD CONSTRAINT {index} PRIMARY KEY ({self.columns})"
        return (f"CREATE INDEX {index} ON {self.table} "
                f"USING {contender.am} ({self.columns}) {options}")

    def drop(self, connection, contender):
        index = contender.index_on(self.table)
        connection.execute(f"ALTER TABLE {self.table} DROP CONSTRAINT IF EXISTS {index}" if self._is_key(contender)
                           else f"DROP INDEX IF EXISTS {index}")

    def _is_key(self, contender):
        return self.primary_key and contender.am == "btree"

    def names(self):
        return list(dict.fromkeys(contender.index_on(self.table) for contender in self.contenders))

    def show_only(self, connection, contender):
        """Make the contender's index the only one of the table that the planner sees, and apply its settings alone.

        The index's own row is updated in any case: that makes the session forget what it knows of the index, so that
        btree is measured without a trace of its having been served before.
        """
        shown = contender.index_on(self.table)
        connection.execute(
            """UPDATE pg_index SET indisvalid = (indexrelid = %(shown)s::regclass)
               WHERE indrelid = %(table)s::regclass
                 AND (indisvalid OR indexrelid = %(shown)s::regclass)""",
            {"shown": shown, "table": self.table})
        others = dict.fromkeys(name for other in self.contenders for name, _ in other.settings)
        apply_settings(connection, {**others, **dict(contender.settings)})
        check_served(connection, contender, shown)

    def show_all(self, connection):
        connection.execute("UPDATE pg_index SET indisvalid = true WHERE indrelid = %s::regclass AND NOT indisvalid",
                           [self.table])

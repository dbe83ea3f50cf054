"""The contenders, and how one index alone is shown to the planner.

All indexes of a table stay built; of them the planner may see only the one
being measured.  Dropping the others is out of the question at 100 million
rows, so their `pg_index.indisvalid` is cleared, which a superuser may do in a
scratch server: the update invalidates the relcache entries of those indexes,
and the planner ignores an index that is not valid.  Every measurement checks
in the plan that the intended index is used.
"""

import dataclasses

EXTENSION = "learnedbtree"


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    am: str  # access method; contenders of the same one share an index
    index_only: bool = True
    ranges: bool = True
    settings: tuple = ()  # (name, value): what sets it apart from another of the same index
    bytes_per_int8: int = 23  # size of an index entry, upper estimate
    builds: bool = True  # false: uses the index of the contender before it

    @property
    def needs_extension(self):
        return self.am == EXTENSION

    def index_on(self, table):
        return f"{table}_{self.am}"


KNOWN = (
    Contender("btree", "btree"),
    Contender("hash", "hash", index_only=False, ranges=False, bytes_per_int8=45),
    Contender("learnedbtree", EXTENSION, settings=(("learnedbtree.enable", "on"),)),
    Contender("learnedbtree-off", EXTENSION, settings=(("learnedbtree.enable", "off"),), builds=False,
              bytes_per_int8=0),
)
BASELINE = "btree"


def choose(names):
    """The contenders of a comma-separated list, in the order known here."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = set(wanted) - {contender.name for contender in KNOWN}
    if unknown or not wanted:
        known = ", ".join(contender.name for contender in KNOWN)
        named = ", ".join(sorted(unknown)) or "(none given)"
        raise SystemExit(f"bench: unknown contender {named}: choose from {known}")
    if "learnedbtree-off" in wanted and "learnedbtree" not in wanted:
        raise SystemExit("bench: learnedbtree-off reads the index that learnedbtree builds: name both")
    return [contender for contender in KNOWN if contender.name in wanted]


class Indexes:
    """One table with an index for every contender."""

    def __init__(self, table, columns, contenders):
        self.table = table
        self.columns = columns
        self.contenders = contenders

    def create_sql(self, contender, options=""):
        return (f"CREATE INDEX {contender.index_on(self.table)} ON {self.table} "
                f"USING {contender.am} ({self.columns}) {options}")

    def drop(self, connection, contender):
        connection.execute(f"DROP INDEX IF EXISTS {contender.index_on(self.table)}")

    def names(self):
        return list(dict.fromkeys(contender.index_on(self.table) for contender in self.contenders))

    def show_only(self, connection, contender):
        """Make the contender's index the only one of the table that the planner sees, and apply its settings."""
        connection.execute(
            """UPDATE pg_index SET indisvalid = (indexrelid = %(shown)s::regclass)
               WHERE indrelid = %(table)s::regclass
                 AND indisvalid <> (indexrelid = %(shown)s::regclass)""",
            {"shown": contender.index_on(self.table), "table": self.table})
        for name, value in contender.settings:
            connection.execute(f"SET {name} = {value}")

    def show_all(self, connection):
        connection.execute("UPDATE pg_index SET indisvalid = true WHERE indrelid = %s::regclass AND NOT indisvalid",
                           [self.table])

"""Key sets: columns, and how the key of a row number is made.

A set made by rule computes its key from the row number i alone, with the server's own hash: the same rows on
every machine.  A real set has base keys in a file; row i takes one of them, shifted by a multiple of the set's
span (text: behind a number) where there are more rows than base keys, which keeps the local shape.
"""

import dataclasses
import lzma
import pathlib

from harness import load

BASE = "real_keys"  # table (n int8 from 0, k) of the base keys
HASH = load.key_of("i")
POSITIVE = f"({HASH} & {load.INT8_MAX})"
UNIFORM = f"(({POSITIVE}::float8 + 1) / {float(load.KEY_SPACE // 2)!r})"  # in (0, 1]
YCSB = f"'user' || lpad({POSITIVE}::text, 19, '0')"
C_COLLATION = '"C"'
ICU_COLLATION = '"en-US-x-icu"'
LIBC_COLLATION = '"en_US.utf8"'
COLLATIONS = (("c", "C", C_COLLATION), ("libc", "libc en_US", LIBC_COLLATION), ("icu", "ICU en-US", ICU_COLLATION))
UUID_RANDOM = "md5(i::text)"
VARIANT = "('{8,9,a,b}'::text[])[(i % 4 + 1)::int4]"
PATH_PARTS = ("'{northern-region,southern-region,eastern-region,western-region}'::text[]",
              "'{customer-invoices,delivery-notes,signed-contracts,inspection-reports}'::text[]")
SHOPS = "'{garden-and-terrace,household-appliances,office-furniture,sports-and-leisure,spare-parts}'::text[]"


def _bits(shift, modulus):
    """A number below `modulus` from the key's bits."""
    return f"(({POSITIVE} >> {shift}) % {modulus})"


def _one_of(array, shift, count):
    return f"({array})[({_bits(shift, count)} + 1)::int4]"


PATH = (f"'/srv/storage/archive/' || {_one_of(PATH_PARTS[0], 3, 4)} || '/' || {_one_of(PATH_PARTS[1], 7, 4)} || '/' "
        f"|| 2020 + {_bits(11, 5)} || '/scanned-documents/page-' || lpad(to_hex({HASH}), 16, '0') || '.tiff'")
URL = (f"'https://www.example.com/catalogue/' || {_one_of(SHOPS, 3, 5)} || '/department-' || {_bits(7, 9)} "
       f"|| '/product-details/view.html?session=none&article=' || lpad({POSITIVE}::text, 19, '0')")
GIVEN = "'{anna,bernd,carlos,dagmar,elif,fatima,george,hiroshi,ines,jean,karin,lukasz,maria,nils,olga,paul}'::text[]"
FAMILY = ("'{adams,becker,costa,dubois,eriksson,fischer,garcia,hansen,ivanova,jones,keller,lopez,moreau,novak,okafor,"
          "petrov,rossi,santos,tanaka,usman,vogel,weber,yilmaz,zhang}'::text[]")
DOMAINS = "'{example.com,example.net,mail.example.org,post.example.de,office.example.co.uk}'::text[]"
SYLLABLES = ("'{ba,Bé,chi,dó,Eu,fü,gra,hö,Île,ja,ké,Ló,ma,né,ñu,Ø,pra,qui,Ré,sa,Šte,tü,vo,Wi,xa,yé,Za,ßen}'::text[]")


def _email():
    return (f"{_one_of(GIVEN, 3, 16)} || '.' || {_one_of(FAMILY, 7, 24)} || {_bits(12, 10**7)} || '@' || "
            f"{_one_of(DOMAINS, 36, 5)}")


def _word():
    """Of four to six syllables, some with accents and capital letters."""
    return " || ".join([*(_one_of(SYLLABLES, 3 + 5 * part, 28) for part in range(4)),
                        *(f"left({_one_of(SYLLABLES, 23 + 7 * part, 28)}, ({_bits(40 + part, 4)})::int4)"
                          for part in range(2)), f"CASE WHEN i % 4 = 0 THEN ' ' || {_bits(44, 1000)} ELSE '' END"])


@dataclasses.dataclass(frozen=True)
class KeySet:
    name: str
    title: str
    columns: tuple  # (name, type and collation), in the index's order
    values: tuple  # for each column, SQL of a row number i (and of a base key k, span and copy number)
    entry_bytes: int  # of an index a row, upper estimate
    collation: str | None = None  # what the server has to have
    file: str | None = None  # of a real set
    numbers: bool = True  # of a real set: base keys are integers
    unique: bool = False  # then btree's index is the table's primary key

    def select(self, source, base_size=None, span=None):
        """SQL for the keys of the rows i, in the order of j, of `source`, SQL that gives (i, j)."""
        values = ", ".join(f"({value}) AS {name}" for value, (name, _) in zip(self.values, self.columns))
        if not self.file:
            return f"SELECT {values} FROM ({source}) AS s"
        return (f"SELECT {values} FROM (SELECT b.k, j, (i - 1) / {base_size} AS copy, {span}::int8 AS span "
                f"FROM ({source}) AS r JOIN {BASE} AS b ON b.n = (i - 1) % {base_size}) AS s ORDER BY j")

    def column_list(self):
        return ", ".join(name for name, _ in self.columns)

    def definitions(self):
        return ", ".join(f"{name} {kind} NOT NULL" for name, kind in self.columns)


def _single(name, title, kind, value, entry_bytes, **more):
    return KeySet(name, title, (("k", kind),), (value,), entry_bytes, **more)


MAIN = (
    _single("ycsb_c", "YCSB text, C", f"text COLLATE {C_COLLATION}", YCSB, 45),
    _single("ycsb_icu", "YCSB text, ICU en-US", f"text COLLATE {ICU_COLLATION}", YCSB, 45,
            collation=ICU_COLLATION),
    _single("uuid4", "uuid v4", "uuid",
            f"overlay(overlay({UUID_RANDOM} PLACING '4' FROM 13) PLACING {VARIANT} FROM 17)::uuid",
            35),
    # Ascending milliseconds, and a random rest.
    _single("uuid7", "uuid v7", "uuid",
            f"overlay(overlay(lpad(to_hex(1700000000000 + i * 5 + {_bits(5, 5)}), 12, '0') || "
            f"substr({UUID_RANDOM}, 13) PLACING '7' FROM 13) PLACING {VARIANT} FROM 17)::uuid",
            35),
    # A thousand tenants of very different sizes, whose ids come from one sequence.
    KeySet("tenant_id", "tenant int4, id int8", (("tenant", "int4"), ("id", "int8")),
           (f"(1000 * {UNIFORM} * {UNIFORM})::int4", "i"), 35),
    _single("numeric", "numeric, 4 decimals", "numeric", f"{HASH} * 0.0001", 36),
)
OTHERS = (
    _single("int8", "int8", "int8", HASH, 23),
    _single("int4", "int4", "int4", f"({HASH} >> 32)::int4", 23),
    _single("float8", "float8, exponential", "float8", f"-ln({UNIFORM})", 23),
    _single("timestamptz", "timestamptz, ascending", "timestamptz",
            "timestamptz '2020-01-01 00:00:00+00' + i * interval '1.7 seconds' "
            f"+ {_bits(5, 2**20)} * interval '1 microsecond'", 23),
    _single("bpchar", "char(16)", f"char(16) COLLATE {C_COLLATION}", f"upper(to_hex({_bits(0, 2**44)}))", 40),
    _single("inet", "inet", "inet", f"inet '1.0.0.0' + {_bits(0, 2**31)}", 27),
    _single("ycsb_libc", "YCSB text, libc en_US", f"text COLLATE {LIBC_COLLATION}", YCSB, 45,
            collation=LIBC_COLLATION),
    _single("paths", "file paths, C", f"text COLLATE {C_COLLATION}", PATH, 140),
    _single("urls", "URLs, C", f"text COLLATE {C_COLLATION}", URL, 160),
)
TEXT = (
    *(_single(f"email_{name}", f"e-mail addresses, {title}", f"text COLLATE {collation}", _email(), 60,
              collation=None if name == "c" else collation)
      for name, title, collation in COLLATIONS),
    *(_single(f"words_{name}", f"words with accents, {title}", f"text COLLATE {collation}", _word(), 50,
              collation=collation)
      for name, title, collation in COLLATIONS[1:]),
    _single("urls_icu", "URLs, ICU en-US", f"text COLLATE {ICU_COLLATION}", URL, 160,
            collation=ICU_COLLATION),
    KeySet("text_time", "text ICU, timestamptz",
           (("device", f"text COLLATE {ICU_COLLATION}"), ("at", "timestamptz")),
           ("'device-' || lpad((i % 1000)::text, 5, '0')",
            "timestamptz '2024-01-01 00:00:00+00' + i / 1000 * interval '10 seconds'"), 45,
           collation=ICU_COLLATION),
    _single("long_prefix", "300 bytes in common, C", f"text COLLATE {C_COLLATION}",
            f"repeat('the same for all of them / ', 11) || 'abc' || lpad({POSITIVE}::text, 19, '0')", 360),
)
REAL = (
    _single("english_words", "English words, C", f"text COLLATE {C_COLLATION}", "lpad(copy::text, 4, '0') || k", 45,
            file="english_words.txt.xz", numbers=False),
    _single("commit_times", "commit times, int8", "int8", "k + copy * span", 23, file="commit_times.txt.xz"),
    _single("ipv4_starts", "IPv4 prefixes, int8", "int8", "k + copy * span", 23, file="ipv4_starts.txt.xz"),
    *(_single(f"debian_paths_{name}", f"Debian's paths, {title}", f"text COLLATE {collation}",
              "CASE copy WHEN 0 THEN k ELSE k || '.' || copy END", 110, file="debian_paths.txt.xz", numbers=False,
              collation=None if name == "c" else collation)
      for name, title, collation in COLLATIONS),
)
GROUPS = {"main": MAIN, "others": OTHERS, "text": TEXT, "real": REAL, "all": MAIN + OTHERS + TEXT + REAL}


def choose(names, groups):
    """The sets of a comma-separated list of names and groups, in the order of the group `all`."""
    known = {key_set.name: (key_set,) for key_set in groups["all"]} | groups
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        named = ", ".join(unknown) or "(none given)"
        raise SystemExit(f"bench: unknown key set {named}: choose from {', '.join(known)}")
    chosen = {key_set for name in wanted for key_set in known[name]}
    return [key_set for key_set in groups["all"] if key_set in chosen]


def missing(bench, key_set):
    """Why a set cannot be measured here, or None."""
    if key_set.file:
        folder = bench.options.keys
        if not folder:
            return "no folder of real keys was named (--keys, LBT_KEYS)"
        if not (pathlib.Path(folder) / key_set.file).is_file():
            return f"there is no {key_set.file} in the folder of real keys"
    if key_set.collation and not has_collation(bench, key_set.collation):
        return f"the server has no collation {key_set.collation}"
    return None


def has_collation(bench, collation):
    return bench.connection.execute(
        "SELECT count(*) FROM pg_collation WHERE collname = %s AND collencoding IN (-1, pg_char_to_encoding('UTF8'))",
        [collation.strip('"')]).fetchone()[0] > 0


def load_base(bench, key_set):
    """Read a real set's file into the table BASE; returns its size, its span, and how many lines were no keys."""
    keys, others = [], 0
    with lzma.open(pathlib.Path(bench.options.keys) / key_set.file, "rt", encoding="utf-8") as lines:
        for line in lines:
            key = line.rstrip("\n")
            # A rounded number, say, would not be a real key.
            if key and (not key_set.numbers or key.lstrip("-").isdigit()):
                keys.append(key)
            else:
                others += 1
    kind = "int8" if key_set.numbers else "text"
    connection = bench.connection
    connection.execute(f"DROP TABLE IF EXISTS {BASE}")
    with load.loading(bench):
        connection.execute(f"CREATE TABLE {BASE} (n int8 NOT NULL, k {kind} NOT NULL)")
        with connection.cursor() as cursor, cursor.copy(f"COPY {BASE} FROM STDIN") as copy:
            for number, key in enumerate(keys):
                copy.write_row((number, key))
    connection.execute(f"ANALYZE {BASE}")
    span = max(map(int, keys)) - min(map(int, keys)) + 1 if key_set.numbers else 0
    return len(keys), span, others

"""Joins of many tables, of the shape of the Join Order Benchmark: 21 tables of films, and 113 queries.

Tables are made by rule, in proportion to IMDB's.  What is popular is so in all tables: films with many credits have
many facts and tags, too, of which a planner that multiplies selectivities knows nothing.  The queries are drawn with a
fixed seed: a tree of tables around film, filters on some of them, and the same again with other constants.
"""

import random
import string

from harness import load

SHARE = 40  # one row for so many of IMDB's, at scale 1
LEAST_ROWS = 20
FAMILIES, QUERIES = 33, 113
FEWEST_JOINS, MOST_JOINS = 3, 16
SEED = 21
PRIME = 7919  # scatters ranks over ids

WORDS = ("Winter River Stone Garden Night Letter Iron Paper Golden Silent Broken Northern Secret Last Little Red Empty "
         "Burning Lost Hidden Summer Glass Wild Distant Bitter Velvet Hollow Amber Scarlet Crooked").split()
NAMES = ("Almeida Bauer Castro Dubois Eriksen Fischer Gallo Horvat Ivanov Jensen Kowalski Lindgren Moreau Novak Okafor "
         "Petrov Quinn Rossi Santos Tanaka Ueda Varga Weber Xu Yilmaz Zeman").split()
TOPICS = ("murder sequel revenge train island robot doctor orphan casino desert letter lighthouse soldier wedding "
          "heist ghost violin harbour circus twin").split()
GENRES = "drama comedy short documentary thriller romance action family crime horror music adventure war western".split()
PLACES = "us gb de fr it jp in ca es se dk pl br mx nl au".split()
LANGUAGES = "english french german spanish italian japanese hindi swedish".split()
FACTS = ("genre language country colour length release rating votes budget gross biography birthplace "
         "height quote trivia").split()

TYPES = {  # table -> its names
    "film_kind": "feature series episode short video game special".split(),
    "studio_kind": "producer distributor effects other".split(),
    "fact_kind": FACTS + [f"fact {number}" for number in range(len(FACTS) + 1, 114)],
    "link_kind": "follows precedes remake version spoof features".split() + [f"link {n}" for n in range(7, 19)],
    "credit_kind": ("actor actress producer writer camera composer costume director editor miscellaneous design "
                    "guest").split(),
    "cast_state": "cast crew complete verified".split(),
}
NUMBERS = {  # IMDB's rows
    "film": 2_528_312, "person": 4_167_491, "role": 3_140_339, "studio": 234_997, "tag": 134_170, "credit": 36_244_344,
    "film_studio": 2_609_129, "film_fact": 14_835_720, "film_figure": 1_380_035, "film_tag": 4_523_930,
    "film_link": 29_997, "film_alias": 361_472, "person_alias": 901_343, "person_fact": 2_963_664,
    "completeness": 135_086,
}


# ---- tables: SQL of row i; a number is the stream of the draw ----

def _share(stream):
    """From 0 to below 1."""
    return f"((hashint8extended(i, {stream}) & 9007199254740991) / 9007199254740992::float8)"


def _draw(count, stream):
    return f"((hashint8extended(i, {stream}) & 2147483647) % {count})"


def _id(count, stream):
    return f"{_draw(count, stream)} + 1"


def _popular(count, stream, curve="{u} * {u} * {u}"):
    """An id, few of them far more often; the ranks are the same in all tables."""
    return f"floor({count} * ({curve.format(u=_share(stream))}))::int8 * {PRIME} % {count} + 1"


def _film(rows, stream):
    return _popular(rows["film"], stream, "{u} * sqrt({u})")


def _word(words, stream, common=False):
    """`common`: the first ones more often."""
    place = f"floor({len(words)} * {_share(stream)} * {_share(stream + 500)})::int4" if common else _draw(
        len(words), stream)
    return f"('{{{','.join(words)}}}'::text[])[1 + {place}]"


def _value(kind):
    """A fact says something of its kind."""
    return (f"CASE {kind} WHEN 1 THEN {_word(GENRES, 61, True)} WHEN 2 THEN {_word(LANGUAGES, 62, True)} "
            f"WHEN 3 THEN {_word(PLACES, 63, True)} WHEN 4 THEN {_word(['colour', 'black and white'], 64, True)} "
            f"WHEN 5 THEN (40 + {_draw(140, 65)})::text ELSE {_word(WORDS, 66)} || ' ' || {_draw(100_000, 67)} END")


def tables(rows):
    """(table, columns, SQL of a row's values), referenced ones first."""
    kind_of_fact = f"(floor(40 * {_share(31)} * {_share(32)} * {_share(33)})::int4 + 1)"
    words = f"{_word(WORDS, 11)} || ' ' || {_word(WORDS, 12)} || ' ' || {_draw(1000, 13)}"
    film, person = "film_id int4 NOT NULL REFERENCES film", "person_id int4 NOT NULL REFERENCES person"
    kind = lambda table: f"kind_id int4 NOT NULL REFERENCES {table}"  # noqa: E731
    for table, names in TYPES.items():
        yield table, "name text NOT NULL", f"('{{{','.join(names)}}}'::text[])[i]"
    yield "tag", "name text NOT NULL", f"{_word(TOPICS, 14)} || '-' || {_word(TOPICS, 15)} || '-' || i"
    yield ("studio", "name text NOT NULL, country text", f"{_word(WORDS, 11)} || ' ' || "
           f"{_word(['Pictures', 'Films', 'Studio', 'Media'], 12, True)} || ' ' || i, {_word(PLACES, 16, True)}")
    yield ("person", "name text NOT NULL, gender text",
           f"{_word(NAMES, 17)} || ', ' || {_word(NAMES, 18)} || ' ' || i % 100, {_word(['m', 'f', 'NULL'], 19, True)}")
    yield "role", "name text NOT NULL", f"{_word(NAMES, 20)} || ' ' || {_word(TOPICS, 21)} || ' ' || i"
    yield ("film", f"title text NOT NULL, {kind('film_kind')}, year int4",
           f"{words}, CASE WHEN {_share(22)} < 0.4 THEN 1 ELSE {_id(7, 23)} END, "
           f"CASE WHEN {_share(24)} > 0.03 THEN 1920 + floor(105 * sqrt({_share(25)}))::int4 END")
    yield "film_alias", f"{film}, title text NOT NULL", f"{_film(rows, 1)}, {words}"
    yield ("film_studio", f"{film}, studio_id int4 NOT NULL REFERENCES studio, {kind('studio_kind')}, note text",
           f"{_film(rows, 2)}, {_popular(rows['studio'], 26)}, floor(4 * {_share(27)} * {_share(28)})::int4 + 1, "
           f"CASE WHEN {_share(29)} < 0.5 THEN '(' || {_word(PLACES, 30, True)} || ') (' || 1950 + {_draw(75, 34)} || ')' END")
    yield "film_fact", f"{film}, {kind('fact_kind')}, value text NOT NULL", (
        f"{_film(rows, 3)}, {kind_of_fact}, {_value(kind_of_fact)}")
    yield ("film_figure", f"{film}, {kind('fact_kind')}, value text NOT NULL",
           f"{_film(rows, 4)}, 7 + {_draw(4, 35)}, (1 + {_share(36)} * 9)::numeric(3, 1)::text")
    yield "film_tag", f"{film}, tag_id int4 NOT NULL REFERENCES tag", f"{_film(rows, 5)}, {_popular(rows['tag'], 37)}"
    yield ("film_link", f"{film}, linked_id int4 NOT NULL REFERENCES film, {kind('link_kind')}",
           f"{_film(rows, 6)}, {_film(rows, 7)}, {_id(18, 38)}")
    yield ("completeness", f"{film}, subject_id int4 NOT NULL REFERENCES cast_state, "
           "state_id int4 NOT NULL REFERENCES cast_state", f"{_film(rows, 8)}, {_id(2, 39)}, 3 + {_draw(2, 40)}")
    someone = _popular(rows["person"], 41, "{u} * sqrt({u})")
    yield "person_alias", f"{person}, name text NOT NULL", f"{someone}, {_word(NAMES, 42)} || ' ' || {_word(NAMES, 43)}"
    yield ("person_fact", f"{person}, {kind('fact_kind')}, value text NOT NULL",
           f"{someone}, 11 + floor(5 * {_share(44)} * {_share(45)})::int4, {_word(WORDS, 46)} || ' ' || {_draw(5000, 47)}")
    # In the order of persons, as they are filed.
    yield ("credit", f"{person}, {film}, role_id int4 REFERENCES role, {kind('credit_kind')}, note text",
           f"1 + i * {rows['person']} / {rows['credit'] + 1}, {_film(rows, 9)}, "
           f"CASE WHEN {_share(48)} < 0.5 THEN {_popular(rows['role'], 49)} END, "
           f"floor(12 * {_share(50)} * {_share(51)})::int4 + 1, "
           f"CASE WHEN {_share(52)} < 0.3 THEN {_word(['(voice)', '(uncredited)', '(archive)', '(producer)'], 53, True)} END")


def numbers_of_rows(scale):
    return {**{table: len(names) for table, names in TYPES.items()},
            **{table: max(round(rows * scale / SHARE), LEAST_ROWS) for table, rows in NUMBERS.items()}}


def load_all(bench, scale):
    """Keys and foreign keys come after the rows; each foreign key gets an index."""
    rows = numbers_of_rows(scale)
    for table, columns, values in bench.track(list(tables(rows))):
        bare = ", ".join(column.partition(" REFERENCES ")[0] for column in columns.split(", "))
        load.fill(bench, table, f"id int4 NOT NULL, {bare}",
                  f"SELECT i, {values} FROM generate_series(1, {rows[table]}::int8) AS i")
        bench.connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY (id)")
        for column in columns.split(", "):
            name, _, referenced = column.partition(" REFERENCES ")
            if referenced:
                name = name.split()[0]
                bench.connection.execute(f"ALTER TABLE {table} ADD FOREIGN KEY ({name}) REFERENCES {referenced}; "
                                         f"CREATE INDEX ON {table} ({name})")
        bench.say(f"loaded {rows[table]:,} rows of {table}")


# ---- queries ----

# Branches from film: ([(table, alias, join)], [filters of which one may be taken], [columns to select], the branch needed).
# In filters, {word} and the like are drawn anew for each variant.
ROOT_FILTERS = ["f.year BETWEEN {year} AND {year} + 8", "f.year > {year}", "f.title LIKE '%{word}%'",
                "f.year BETWEEN {year} AND {year} + 20"]
BRANCHES = {
    "kind": ([("film_kind", "fk", "fk.id = f.kind_id")],
             ["fk.name IN ('{kind}', '{kind}')", "fk.name = '{kind}'"], [], None),
    "studio": ([("film_studio", "fs", "fs.film_id = f.id"), ("studio", "s", "s.id = fs.studio_id")],
               ["s.country = '{place}'", "s.country <> '{place}' AND s.name LIKE '%{word}%'", "s.name LIKE '{word}%'",
                "fs.note LIKE '%({place})%' AND s.country IN ('{place}', '{place}')"], ["s.name"], None),
    "studio_kind": ([("studio_kind", "sk", "sk.id = fs.kind_id")], ["sk.name = '{maker}'"], [], "studio"),
    "tag": ([("film_tag", "ft", "ft.film_id = f.id"), ("tag", "t", "t.id = ft.tag_id")],
            ["t.name LIKE '{topic}-%'", "t.name LIKE '%-{topic}-%'", "t.name LIKE '{topic}-{topic}-%'"], ["t.name"], None),
    "fact": ([("film_fact", "ff", "ff.film_id = f.id"), ("fact_kind", "k1", "k1.id = ff.kind_id")],
             ["k1.name = 'genre' AND ff.value IN ('{genre}', '{genre}')", "k1.name = 'country' AND ff.value = '{place}'",
              "k1.name IN ('language', 'country') AND ff.value IN ('{language}', '{place}', '{place}')",
              "k1.name = 'release' AND ff.value LIKE '{word}%'"], ["ff.value"], None),
    "figure": ([("film_figure", "fg", "fg.film_id = f.id"), ("fact_kind", "k2", "k2.id = fg.kind_id")],
               ["k2.name = 'rating' AND fg.value > '{figure}'", "k2.name = 'rating' AND fg.value < '{figure}'",
                "k2.name IN ('votes', 'budget')"], ["fg.value"], None),
    "credit": ([("credit", "c", "c.film_id = f.id"), ("person", "p", "p.id = c.person_id")],
               ["p.name LIKE '{name}%'", "c.note IN ('(voice)', '(producer)') AND p.gender = 'f'",
                "p.gender = 'm' AND p.name LIKE '%{name}%'", "c.note = '(uncredited)' AND p.name LIKE '{name}%'"],
               ["p.name"], None),
    "credit_kind": ([("credit_kind", "ck", "ck.id = c.kind_id")], ["ck.name = '{job}'", "ck.name IN ('{job}', '{job}')"],
                    [], "credit"),
    "role": ([("role", "r", "r.id = c.role_id")], ["r.name LIKE '%{topic}%'", "r.name LIKE '{name}%'"], ["r.name"], "credit"),
    "person_fact": ([("person_fact", "pf", "pf.person_id = p.id"), ("fact_kind", "k3", "k3.id = pf.kind_id")],
                    ["k3.name = 'biography'", "k3.name = 'birthplace' AND pf.value LIKE '{word}%'"], ["pf.value"], "credit"),
    "person_alias": ([("person_alias", "pa", "pa.person_id = p.id")], ["pa.name LIKE '%{name}%'"], ["pa.name"], "credit"),
    "film_alias": ([("film_alias", "fa", "fa.film_id = f.id")], ["fa.title LIKE '%{word}%'"], ["fa.title"], None),
    "link": ([("film_link", "l", "l.film_id = f.id"), ("link_kind", "lk", "lk.id = l.kind_id"),
              ("film", "f2", "f2.id = l.linked_id")],
             ["lk.name IN ('follows', 'precedes')", "f2.year > {year}", "lk.name LIKE 'link%'"], ["f2.title"], None),
    "complete": ([("completeness", "cc", "cc.film_id = f.id"), ("cast_state", "c1", "c1.id = cc.subject_id"),
                  ("cast_state", "c2", "c2.id = cc.state_id")],
                 ["c1.name = 'cast' AND c2.name LIKE 'compl%'", "c2.name = 'verified'"], [], None),
}
CONSTANTS = {"word": WORDS, "name": NAMES, "topic": TOPICS, "genre": GENRES, "place": PLACES[:8], "language": LANGUAGES,
             "kind": TYPES["film_kind"], "maker": TYPES["studio_kind"][:2], "job": TYPES["credit_kind"],
             "year": [str(year) for year in range(1960, 2015)], "figure": ["2.5", "4.0", "6.0", "7.5", "8.5"]}
FILTERED = 0.5  # share of branches with a filter

PLANNED = """SELECT min(f.title), min(s.name), min(t.name), min(p.name)
  FROM film f, film_studio fs, studio s, film_tag ft, tag t, credit c, person p, film_fact ff
 WHERE fs.film_id = f.id AND s.id = fs.studio_id AND ft.film_id = f.id AND t.id = ft.tag_id AND c.film_id = f.id
   AND p.id = c.person_id AND ff.film_id = f.id
   AND f.year > 2000 AND s.country = 'de' AND t.name LIKE 'robot-%' AND p.name LIKE 'Novak%'"""  # a join of eight tables


class _Draw:
    """Only random.Random.random() gives the same on all versions of Python."""

    def __init__(self, seed):
        self._next = random.Random(seed).random

    def below(self, number):
        return int(self._next() * number)

    def one(self, sequence):
        return sequence[self.below(len(sequence))]

    def happens(self, share):
        return self._next() < share


def queries():
    """{name: SQL}: 1a, 1b ... 33c."""
    made = {}
    for family in range(FAMILIES):
        variants = QUERIES // FAMILIES + (family < QUERIES % FAMILIES)
        joins = FEWEST_JOINS + family * (MOST_JOINS - FEWEST_JOINS + 1) // FAMILIES
        template = _template(_Draw(SEED * 1000 + family), joins)
        for variant in range(variants):
            draw = _Draw(SEED * 1_000_000 + family * 100 + variant)
            made[f"{family + 1}{string.ascii_lowercase[variant]}"] = _filled(template, draw)
    return made


def _template(draw, joins):
    """SQL of a tree of so many joins around film, with places for constants."""
    branches = []
    while (left := joins - sum(len(BRANCHES[name][0]) for name in branches)) > 0:
        possible = [name for name, (joined, _, _, needed) in BRANCHES.items() if name not in branches
                    and len(joined) <= left and (needed is None or needed in branches)]
        if not possible:
            branches = []  # no branch is small enough: another tree
            continue
        branches.append(draw.one(possible))
    parts = [BRANCHES[name] for name in branches]
    joined = [entry for part in parts for entry in part[0]]
    conditions = [join for _, _, join in joined]
    conditions += [draw.one(filters) for _, filters, _, _ in parts if draw.happens(FILTERED)]
    conditions.append(draw.one(ROOT_FILTERS))
    columns = ["f.title"] + [column for _, _, columns, _ in parts for column in columns][:3]
    return (f"SELECT {', '.join(f'min({column})' for column in columns)}, count(*)\n"
            f"  FROM {', '.join(['film f', *(f'{table} {alias}' for table, alias, _ in joined)])}\n"
            f" WHERE {' AND '.join(conditions)}")


def _filled(template, draw):
    sql, constant = "", ""
    for text, name, _, _ in string.Formatter().parse(template):
        if name and text != " AND ":  # else the end of a range, which names its beginning again
            constant = draw.one(CONSTANTS[name])
        sql += text + (constant if name else "")
    return sql


"""Key sets by distribution, as papers on learned indexes use them: int8 keys, made by rule from the row number.

A draw from a distribution becomes a number of 36 bits, and the row number goes into 27 further ones below: keys
differ up to 134 million rows, so that they can be a primary key, and the shape is what it was.  bench/README.md
says what the four that imitate SOSD's sets imitate.
"""

from harness import load

from .keys_sets import KeySet

LOW_BITS = 27
LARGEST = 2**36 - 1
SEED = 100  # of a row's first draw; further ones come after it
UNIT = 2**18  # of draws that reach far: what is 1 in the distribution

SEGMENT_WIDTH = 200  # of a segment and the gap after it, on average, in keys of the segment
COUNTRIES, TOWNS, STREETS = 64, 300, 200  # of the whole, a country, a town; bits of a place: 10, 10, 8, 8
OUTLIERS = 21
WIKI_SECONDS = 600_000_000
DAY = 86_400
BURSTS, BURST_SECONDS = 2_000, 300


def drawn(number, of="i"):
    """SQL for a random int8 that is not negative: draw `number` of the row, or of another number `of`."""
    return f"(hashint8extended({of}, {SEED + number}) & {load.INT8_MAX})"


def uniform(number, of="i"):
    """SQL for a draw from (0, 1]."""
    return f"(({drawn(number, of)}::float8 + 1) / {float(load.KEY_SPACE // 2)!r})"


NORMAL = f"(sqrt(-2 * ln({uniform(0)})) * cos(2 * pi() * {uniform(1)}))"


def distinct(high):
    """SQL for a key that no other row has, of SQL for a number of up to 36 bits."""
    return f"floor(least({high}, {LARGEST}))::int8 * {2**LOW_BITS} + i % {2**LOW_BITS}"


def segmented(rows):
    """Segments of so many consecutive keys, with random gaps after them."""
    segment, width = f"(i / {rows})", rows * SEGMENT_WIDTH
    return f"{segment} * {width} + {drawn(0, segment)} % {width - rows} + i % {rows}"


def _osm():
    """A path down a quadtree: country, town, street, house; of each level few have the most."""
    skewed = lambda count, number: f"floor({count} * power({uniform(number)}, 3))::int8"  # noqa: E731
    country = f"({skewed(COUNTRIES, 0)})"
    town = f"({country} * {TOWNS} + {skewed(TOWNS, 1)})"
    street = f"({town} * {STREETS} + {skewed(STREETS, 2)})"
    return distinct(f"{drawn(3, country)} % 1024 * {2**26} + {drawn(4, town)} % 1024 * {2**16} "
                    f"+ {drawn(5, street)} % 256 * 256 + {drawn(6)} % 256")


def _wiki():
    """Two rows share a second; one in twenty is of a burst, the others come ever faster, and more by day."""
    edit = "(i / 2)"
    growing = f"({WIKI_SECONDS} * sqrt({uniform(0, edit)}))"
    daily = f"{growing} + {0.6 * DAY:.0f} / (2 * pi()) * sin(2 * pi() * {growing} / {DAY})"
    burst = f"({drawn(1, edit)} % {BURSTS})"
    return (f"CASE WHEN {edit} % 20 = 0 THEN {drawn(2, burst)} % {WIKI_SECONDS} + {drawn(3, edit)} % {BURST_SECONDS} "
            f"ELSE ({daily})::int8 END")


def _set(name, title, value, unique=True):
    return KeySet(name, title, (("k", "int8"),), (value,), 23, unique=unique)


DISTRIBUTIONS = (
    _set("dense", "dense", "i"),
    _set("segmented_1", "segmented, 1 %", segmented(100)),
    _set("segmented_10", "segmented, 10 %", segmented(10)),
    _set("uniform", "uniform", load.key_of("i")),
    _set("normal", "normal", distinct(f"{NORMAL} * {2.0**32}")),
    _set("lognormal", "lognormal, σ = 2", distinct(f"exp(2 * {NORMAL}) * {UNIT}")),
    _set("books", "like books", distinct(f"exp(CASE WHEN i % 10 = 0 THEN 2.5 ELSE 1 END * {NORMAL}) * {UNIT}")),
    _set("osm", "like osm", _osm()),
    _set("fb", "like fb", f"CASE WHEN i <= {OUTLIERS} THEN {drawn(1)} / 2 + {2**62} "
                          f"ELSE {distinct(f'{uniform(0)} * {2**30}')} END"),
    _set("wiki", "like wiki", _wiki(), unique=False),
)

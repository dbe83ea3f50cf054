"""What an experiment is, and the loop that runs one.

An experiment is a module `experiments/NAME.py` with a subclass of Experiment in `EXPERIMENT`.  It says what
memory it needs, loads its tables, lists its measurements, and may add facts.  The loop alternates the
contenders within every round and starts each round with another one, so that a drift of the machine
meets all of them alike.
"""

import sys
import time
from statistics import median

from . import load
from .contenders import BASELINE
from .measure import WrongAnswer
from .progress import Progress, in_words

SILENCE_SECONDS = 30  # at most, while there is progress to tell of


class Experiment:
    title = ""

    def add_options(self, parser):
        """Add command-line options of its own."""

    def check_options(self, options):
        """Raise SystemExit if the options make no sense."""

    def bytes_needed(self, options, contenders):
        """Size of everything that is to stay in shared_buffers."""
        raise NotImplementedError

    def settings(self, options):
        """Server settings beyond the harness's."""
        return {}

    def load(self, bench):
        """Make tables and indexes."""
        raise NotImplementedError

    def measure(self, bench):
        """Run the measurements, by default with bench.run_all()."""
        raise NotImplementedError

    def conclude(self, bench):
        """After the report: raise Failed if what it says is a failure."""


class Bench:
    """One run: the server, a session on it, and what has been found so far."""

    def __init__(self, options, contenders, started):
        self.options = options
        self.contenders = contenders
        self.started = started
        self.server = None
        self.connection = None
        self.results = []  # dicts: key, title, unit, timed, samples and notes by contender
        self.facts = {}  # contender -> {name: value}
        self.tables = []  # (title, rows) of figures that are not a contender's
        self.charts = []  # dicts: see add_chart
        self.questions = ()  # tables that say what is asked: in memory in each cold sample
        self.warnings = []
        self.progress = Progress()
        self._said = started

    def say(self, message):
        self._said = time.monotonic()
        left = self.progress.seconds_left()
        left = "" if left is None else f", about {in_words(left)} left"
        print(f"[{self._said - self.started:8.1f} s{left}] {message}", file=sys.stderr, flush=True)

    def track(self, parts):
        """Go through a list of parts of about equal length; meanwhile messages say how long the rest will take.

        May be nested: the outermost list is what is left.
        """
        return self.progress.track(parts)

    def warn(self, message):
        self.warnings.append(message)
        self.say(f"warning: {message}")

    def fact(self, contender, name, value):
        self.facts.setdefault(contender.name, {})[name] = value

    def add_table(self, title, rows):
        """A table of its own in the report; the first row is its head, and values are numbers or text."""
        self.tables.append((title, rows))

    def add_chart(self, title, x, y, series, kind="line", log_x=False, log_y=False):
        """A picture of its own in the report: `series` is {name: [(x, y), ...]}, `x` and `y` name the axes with units.

        `kind` is "line", or "bars": x are then the names of groups.  A series that is called as a contender, or begins
        so before a comma ("btree, uniform"), has that contender's color.
        """
        self.charts.append({"title": title, "x": x, "y": y, "series": {name: list(map(list, points)) for name, points
                                                                       in series.items()},
                            "kind": kind, "log_x": log_x, "log_y": log_y})

    def add_result(self, key, title, unit, samples, timed=True, notes=None, rate=False):
        """One figure: `samples` are {contender: [a value a round]}.  Of a rate more is better, else less is."""
        self.results.append({"key": key, "title": title, "unit": unit, "timed": timed, "rate": rate,
                             "samples": samples, "notes": notes or {}})

    def in_turn(self, contenders, round_number):
        """The contenders in this round's order."""
        shift = round_number % len(contenders)
        return contenders[shift:] + contenders[:shift]

    def run_all(self, indexes, measurements):
        for measurement in self.track(measurements):
            self.run_one(indexes, measurement)
        indexes.show_all(self.connection)
        self.connection.execute("RESET ALL")  # what the measurements set

    def run_one(self, indexes, measurement):
        taking_part = [contender for contender in (indexes or self).contenders if measurement.applies(contender)]
        samples = {contender.name: [] for contender in taking_part}
        if not taking_part:
            return
        rounds = self.options.rounds if measurement.timed else 1
        answers = {}
        for round_number in self.track(range(-1 if measurement.timed else 0, rounds)):  # round -1 is the warm-up
            if round_number >= 0 and time.monotonic() - self._said > SILENCE_SECONDS:
                self.say(f"{measurement.title}: round {round_number + 1} of {rounds}")
            for contender in self.in_turn(taking_part, max(round_number, 0)):
                value = measurement.run(self, indexes, contender, round_number)
                answers[contender.name] = measurement.last_answer
                if round_number >= 0:
                    samples[contender.name].append(value)
            if len(set(map(repr, answers.values()))) > 1:
                raise WrongAnswer(f"{measurement.title}: the contenders disagree: {answers}")
        notes = {contender.name: note for contender in taking_part if (note := measurement.note(contender))}
        self.add_result(measurement.key, measurement.title, measurement.unit, samples, measurement.timed, notes,
                        measurement.rate)
        self.say(f"{measurement.title}: " + ", ".join(
            f"{name} {median(values):.3g}" for name, values in samples.items())
            + f" {measurement.unit}")

    def build_indexes(self, indexes, rounds):
        """Build every contender's index `rounds` times in alternation; the last build of each stays."""
        building = [contender for contender in self.contenders if contender.builds]
        samples = {contender.name: [] for contender in building}
        for round_number in range(rounds):
            for contender in self.in_turn(building, round_number):
                indexes.drop(self.connection, contender)
                load.prewarm(self, [indexes.table])
                self.connection.execute("CHECKPOINT")
                began = time.perf_counter()
                self.connection.execute(indexes.create_sql(contender))
                samples[contender.name].append(time.perf_counter() - began)
                self.say(f"built {contender.name}, round {round_number + 1} of {rounds}: "
                         f"{samples[contender.name][-1]:.1f} s")
        self.add_result("build", "index build", "s", samples)
        for contender in building:
            size = self.connection.execute("SELECT pg_relation_size(%s::regclass)",
                                           [contender.index_on(indexes.table)]).fetchone()[0]
            self.fact(contender, "index size, MB", size / 1e6)


def speedup(result, baseline, own):
    """How many times as fast as one value of a result another is."""
    return own / baseline if result["rate"] else baseline / own


def ratio_to_baseline(result, contender_name):
    """Speed-up of the contender's median over the baseline's; None where it means nothing."""
    baseline = result["samples"].get(BASELINE)
    own = result["samples"].get(contender_name)
    if not result["timed"] or not baseline or not own or not median(baseline) or not median(own):
        return None
    return speedup(result, median(baseline), median(own))


def numbers(option, listed, most):
    """The numbers of an option's comma-separated list, in order, each once."""
    try:
        found = sorted({int(part) for part in listed.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 1 or found[-1] > most:
        raise SystemExit(f"bench: {option} wants numbers from 1 to {most}, comma-separated")
    return found

"""Models and index-only joins by distribution of the keys: see bench/README.md.

bench/keys with sets of its own, and with models trained to several errors, and pages counted, for each set.
"""

from statistics import median

from harness import learned
from harness.contenders import EXTENSION
from harness.experiment import numbers
from harness.measure import Pages, apply_settings

from . import keys_sets
from .keys import Keys
from .keys_distributions import DISTRIBUTIONS

ERRORS = "1,2,4,8,16,32,64"
MAX_ERROR = f"{EXTENSION}.max_error"
TRAININGS = 5  # of each model; the time is their median


class Distributions(Keys):
    title = "Models and index-only joins by key distribution"
    groups = {**keys_sets.GROUPS, "distributions": DISTRIBUTIONS, "all": DISTRIBUTIONS + keys_sets.GROUPS["all"]}
    usual_sets = "distributions,real,ycsb_c,email_c,urls"

    def __init__(self):
        self.models = {}  # title of a set -> {error: the model's row}

    def add_options(self, parser):
        super().add_options(parser)
        parser.set_defaults(inserts=0)
        parser.add_argument("--errors", default=ERRORS, metavar="LIST",
                            help="learnedbtree.max_error to train with, leaves; joins are measured with the default")

    def check_options(self, options):
        super().check_options(options)
        options.errors = numbers("--errors", options.errors, 1024)

    def measure(self, bench):
        super().measure(bench)
        if not self.models:
            return
        errors = bench.options.errors
        for title, value in (("Knots", lambda model: model["knots"]),
                             ("Model, kB", lambda model: model["bytes"] / 1000),
                             ("Training, µs a leaf", lambda model: model["training_ms"] * 1000 / model["leaves"])):
            bench.add_table(f"{title}, by max_error", [["", *map(str, errors)]] + [
                [key_set, *(value(models[error]) for error in errors)] for key_set, models in self.models.items()])
        bench.add_chart("Size of the model by its largest error", "max_error, in leaves", "knots of the spline", {
            key_set: [(error, models[error]["knots"]) for error in errors]
            for key_set, models in self.models.items()}, log_x=True, log_y=True)

    def train(self, bench, key_set, index):
        """With each error; at last with the default, for the joins."""
        models = {}
        for error in bench.options.errors:
            apply_settings(bench.connection, {MAX_ERROR: error})
            models[error] = learned.train(bench, index)
            if models[error]["state"] != "ready":
                bench.warn(f"{key_set.title}: the model is {models[error]['state']}: {models[error]['reason']}")
                break
            models[error]["training_ms"] = median(learned.train(bench, index)["training_ms"] for _ in range(TRAININGS))
        else:
            self.models[key_set.title] = models
        bench.connection.execute(f"RESET {MAX_ERROR}")
        return super().train(bench, key_set, index)

    def afterwards(self, bench, key_set, indexes, join):
        bench.run_all(indexes, [Pages(f"pages_{key_set.name}", f"{key_set.title}: index pages touched", "pages a probe",
                                      index_only=True, sql=join, per=bench.options.probes)])
        super().afterwards(bench, key_set, indexes, join)


EXPERIMENT = Distributions

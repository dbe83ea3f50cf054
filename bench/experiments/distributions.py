"""Models and index-only joins by distribution of the keys: see bench/README.md.

bench/keys with sets of its own, and with models described, and pages counted, for each set.
"""

from statistics import median

from harness import learned
from harness.measure import Pages

from . import keys_sets
from .keys import Keys
from .keys_distributions import DISTRIBUTIONS

TRAININGS = 5  # of each model; the time is their median


class Distributions(Keys):
    title = "Models and index-only joins by key distribution"
    groups = {**keys_sets.GROUPS, "distributions": DISTRIBUTIONS, "all": DISTRIBUTIONS + keys_sets.GROUPS["all"]}
    usual_sets = "distributions,real,ycsb_c,email_c,urls"

    def __init__(self):
        self.models = {}  # title of a set -> the model's row

    def add_options(self, parser):
        super().add_options(parser)
        parser.set_defaults(inserts=0)

    def measure(self, bench):
        super().measure(bench)
        if not self.models:
            return
        bench.add_table("Models", [["", "knots", "kB", "training, µs a leaf"]] + [
            [key_set, model["knots"], model["bytes"] / 1000, model["training_ms"] * 1000 / model["leaves"]]
            for key_set, model in self.models.items()])

    def train(self, bench, key_set, index):
        model = super().train(bench, key_set, index)
        if model["state"] != "ready":
            bench.warn(f"{key_set.title}: the model is {model['state']}: {model['reason']}")
            return model
        model["training_ms"] = median(learned.train(bench, index)["training_ms"] for _ in range(TRAININGS))
        self.models[key_set.title] = model
        return model

    def afterwards(self, bench, key_set, indexes, join):
        bench.run_all(indexes, [Pages(f"pages_{key_set.name}", f"{key_set.title}: index pages touched", "pages a probe",
                                      index_only=True, sql=join, per=bench.options.probes)])
        super().afterwards(bench, key_set, indexes, join)


EXPERIMENT = Distributions

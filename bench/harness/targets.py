"""Speed-ups that are asked for, and whether they were reached; and that nothing became slower.

An experiment names in bench.targets the results that are judged: {key of a result: speed-up, or None where
only the floor holds}, over the baseline's same result; and in bench.rivals what else a result is to be faster than.
contenders.judged() says whose results these are.
"""

import dataclasses
from statistics import median

from . import contenders
from .contenders import BASELINE
from .experiment import speedup

FLOOR = 0.98  # no result may be slower than the baseline by more than noise


@dataclasses.dataclass(frozen=True)
class Rival:
    """Another contender's result, or the baseline's of another way to do the same."""

    key: str  # of the result that is judged
    speedup: float | None
    title: str  # what it is to be faster than
    over: str = BASELINE
    over_key: str | None = None  # of another result


def judged(bench):
    """A dict for each judged result; what counts is `speedup`, of the medians.

    That of the fastest rounds alone tells, where the two differ, that the machine had other things to do.
    """
    judged_one = contenders.judged(bench.contenders)
    results = {result["key"]: result for result in bench.results if result["timed"]} if judged_one else {}
    found = []
    for key, result in results.items():
        over_baseline = [Rival(key, bench.targets[key], BASELINE)] if key in bench.targets else []
        for rival in over_baseline + [rival for rival in bench.rivals if rival.key == key]:
            own = result["samples"].get(judged_one.name)
            others = results.get(rival.over_key or key, {"samples": {}})["samples"].get(rival.over)
            if own and others:
                result_of = results.get(rival.over_key or key)
                ratio = speedup(result_of, median(others), median(own))
                best = max if result_of["rate"] else min
                found.append({"key": key, "title": result["title"], "over": rival.title, "speedup": ratio,
                              "speedup_of_fastest": speedup(result_of, best(others), best(own)), "target": rival.speedup,
                              "met": ratio >= (rival.speedup or FLOOR), "above_floor": ratio >= FLOOR})
    return found


def rows(bench):
    lines = [["", "over", "speed-up", "of the fastest rounds", "wanted", ""]]
    for entry in judged(bench):
        lines.append([entry["title"], entry["over"], f"{entry['speedup']:.2f}×", f"{entry['speedup_of_fastest']:.2f}×",
                      f"≥ {entry['target'] or FLOOR:.3g}×", "reached" if entry["met"] else "missed"])
    return lines


def verdict(bench):
    """One line on the floor, in a list; nothing where nothing is judged."""
    entries = judged(bench)
    if not entries:
        return []
    below = [entry["title"] for entry in entries if not entry["above_floor"]]
    if below:
        return [f"Below {FLOOR}× in {len(below)} of {len(entries)} cases: {'; '.join(below)}."]
    return [f"No case of {len(entries)} is below {FLOOR}×."]

"""Speed-ups that are asked for, and whether they were reached; and that nothing became slower.

An experiment names in bench.targets the results that are judged: {key of a result: speed-up, or None where
only the floor holds}.  contenders.judged() says whose.
"""

from . import contenders
from .contenders import BASELINE
from .experiment import ratio_to_baseline

FLOOR = 0.98  # no result may be slower than the baseline by more than noise


def judged(bench):
    """A dict for each judged result; what counts is `speedup`, of the medians.

    That of the fastest rounds alone tells, where the two differ, that the machine had other things to do.
    """
    found = []
    judged_one = contenders.judged(bench.contenders)
    for result in bench.results if judged_one else ():
        ratio = ratio_to_baseline(result, judged_one.name)
        if result["key"] in bench.targets and ratio is not None:
            target = bench.targets[result["key"]]
            fastest = min(result["samples"][BASELINE]) / min(result["samples"][judged_one.name])
            found.append({"key": result["key"], "title": result["title"], "speedup": ratio,
                          "speedup_of_fastest": fastest, "target": target,
                          "met": ratio >= (target or FLOOR), "above_floor": ratio >= FLOOR})
    return found


def rows(bench):
    lines = [["", f"speed-up over {BASELINE}", "of the fastest rounds", "wanted", ""]]
    for entry in judged(bench):
        lines.append([entry["title"], f"{entry['speedup']:.2f}×", f"{entry['speedup_of_fastest']:.2f}×",
                      f"≥ {entry['target'] or FLOOR:.4g}×", "reached" if entry["met"] else "missed"])
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

"""Results that are slower than the baseline's, by more than noise."""

from .contenders import BASELINE, judged
from .experiment import ratio_to_baseline, speedup

NOISE = 0.98  # no machine repeats its results more exactly


def losses(results, name):
    """The contender's timed results below NOISE of the baseline's, the worst first: a dict each.

    Where the speed-up of the fastest rounds is another one, the machine had other things to do.
    """
    lost = []
    for result in results:
        ratio = ratio_to_baseline(result, name)
        if ratio is not None and ratio < NOISE:
            best = max if result["rate"] else min
            lost.append({"result": result, "name": name, "speedup": ratio, "speedup_of_fastest": speedup(
                result, *(best(result["samples"][of]) for of in (BASELINE, name)))})
    return sorted(lost, key=lambda loss: loss["speedup"])


def in_words(bench):
    """One line, in a list; nothing where no result can be slower."""
    one = judged(bench.contenders)
    compared = [result for result in bench.results if one and ratio_to_baseline(result, one.name) is not None]
    if not compared:
        return []
    lost = [f"{loss['result']['title']} ({loss['speedup']:.2f}×)" for loss in losses(compared, one.name)]
    of = f"of {len(compared)} results of {one.name}"
    if lost:
        return [f"Below {NOISE}× in {len(lost)} {of}: {'; '.join(lost)}."]
    return [f"None {of} is below {NOISE}×."]

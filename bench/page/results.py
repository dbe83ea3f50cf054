"""A result file as the page needs it: what harness/report.py wrote, and the pictures beside it."""

import base64
import json
import types
from statistics import median

from harness import contenders
from harness.losses import losses

REQUIRED = ("experiment", "title", "environment", "results", "facts", "warnings", "tables")
PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}  # the first that there is


class NoResult(Exception):
    """The file is no result of bench/; the message says why."""


class Run:
    """Of one file.  It has what harness.report asks a Bench for."""

    def __init__(self, path, number):
        found = _read(path)
        self.path = path
        self.id = f"{found['experiment']}-{number}"
        self.title = found["title"]
        self.environment = found["environment"]
        self.facts = found["facts"]
        self.warnings = found["warnings"]
        self.tables = list(found["tables"].items())
        # Files of older runs lack these.
        self.results = [{"rate": False, **result} for result in found["results"]]
        self._pictures = found.get("pictures", [])
        names = sorted({name for result in self.results for name in result["samples"]} | set(self.facts), key=_order)
        self.contenders = [types.SimpleNamespace(name=name) for name in names]
        self.judged = contenders.judged([known for known in contenders.KNOWN if known.name in names])

    def losses(self):
        """The judged contender's, the worst first."""
        return losses(self.results, self.judged.name) if self.judged else []

    def pictures(self):
        """(title, data URI, or None if the file is not there) of each."""
        return [(picture["title"], _data_uri(self.path.with_name(picture["file"]))) for picture in self._pictures]


def spread(result, name):
    """(smallest, largest) of the rounds; None if they do not differ."""
    samples = result["samples"].get(name)
    return (min(samples), max(samples)) if samples and result["timed"] and min(samples) < max(samples) else None


def middle(result, name):
    return median(result["samples"][name])


def _order(name):
    """The contenders' usual order, others behind them."""
    known = [contender.name for contender in contenders.KNOWN]
    return (known.index(name) if name in known else len(known), name)


def _read(path):
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoResult(f"cannot be read: {error}") from None
    lacks = [key for key in REQUIRED if not isinstance(found, dict) or key not in found]
    if lacks:
        raise NoResult(f"no result of bench/: it has no {', '.join(lacks)}")
    return found


def _data_uri(path):
    for suffix, kind in PICTURES.items():
        file = path.with_name(path.name + suffix)
        if file.exists():
            return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"
    return None

"""How long the rest will take, guessed from the parts that are done."""

import time


class Progress:
    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._levels = []  # lists under way, the outermost first: [parts done, parts, share done of the next part]
        self._began = 0

    def track(self, parts):
        """Go through a list of parts of about equal length."""
        parts = list(parts)
        level = [0, len(parts), 0]
        if not self._levels:
            self._began = self._clock()
        self._levels.append(level)
        try:
            for part in parts:
                yield part
                level[:] = level[0] + 1, level[1], 0
            if len(self._levels) > 1:
                self._levels[-2][2] = 1  # what the part says before it ends counts it as done
        finally:
            self._levels.pop()

    def seconds_left(self):
        """Of the outermost list; None where there is none, or nothing of it is done."""
        share = 0
        for done, parts, inside in reversed(self._levels):
            share = (done + (share or inside)) / parts
        return (self._clock() - self._began) * (1 - share) / share if share else None


def in_words(seconds):
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"

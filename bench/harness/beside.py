"""A thread with a connection of its own, beside what is measured."""

import threading


class Beside:
    """Context manager: while it is open, `_watch` runs in the thread, until `_ended` is set; `_begin` before it.

    Closing it raises the error that ended the thread, if any.
    """

    STOP_SECONDS = 60

    def __init__(self, connection):
        self._connection = connection
        self._ended = threading.Event()
        self._error = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._begin()
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._ended.set()
        self._thread.join(self.STOP_SECONDS)
        self._connection.close()
        if self._error and exception[0] is None:
            raise self._error

    def _run(self):
        try:
            self._watch()
        except Exception as error:  # handed to whoever closes us
            self._error = error

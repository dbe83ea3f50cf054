"""Tables that a sample writes to, put back as they were: copies of their files, made and used while the server is down."""

import os
import shutil

from . import cold

FOLDER = "saved"  # in the cluster's folder: goes when it goes


class Saved:
    """The files of relations as they were when this was made, which takes a restart.

    None of the relations may get another file meanwhile: no TRUNCATE, no VACUUM FULL, no REINDEX.
    """

    def __init__(self, bench, relations):
        self._copies = {}  # file -> its copy
        folder = bench.server.folder / FOLDER
        folder.mkdir()
        for name in cold.files_of(bench, relations):
            self._copies[name] = folder / os.path.basename(name)
        cold.restart(bench, {}, self._save)

    def _save(self):
        for name, copy in self._copies.items():
            shutil.copyfile(name, copy)

    def put_back(self, files):
        """Overwrite the files of relations, while the server is down; what a sample has added to them becomes empty."""
        for name in files:
            if name in self._copies:
                shutil.copyfile(self._copies[name], name)
            else:
                os.truncate(name, 0)

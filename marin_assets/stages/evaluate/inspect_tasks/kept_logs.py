"""Inspect's logs of an evaluation that has not ended, below its output, so that a killed one resumes from them.

Inspect replaces a log as a whole when a sample is finished, so that a copy is never half of one.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from marin_assets.inference.journal import FOLDER as UNFINISHED
from marin_assets.inference.journal import WRITING_SHARE
from marin_assets.inference.local_copy import copy_to_local
from marin_resources.storage.files import exists, read_bytes, remove, remove_folder, write_bytes
from marin_resources.storage.paths import join

MADE_BY = "made_by"
Stamp = tuple[int, int]


class KeptLogs:
    """A local folder for logs, with those of an earlier attempt, whose content is saved below the output."""

    def __init__(self, folder: str, output_path: str, *, made_by: str) -> None:
        """Logs of other tasks, or of another model, than `made_by` are removed."""
        self.folder = folder
        self._unfinished = join(output_path, UNFINISHED)
        self._kept = join(self._unfinished, "logs")
        self._saved: dict[str, Stamp] = {}
        self._next_s = 0.0
        Path(folder).mkdir()
        mark = join(self._unfinished, MADE_BY)
        if exists(mark) and read_bytes(mark) == made_by.encode():
            with suppress(FileNotFoundError):  # no sample was finished
                copy_to_local(self._kept, folder)
            self._saved = self._stamps()
        else:
            self.remove()
            write_bytes(mark, made_by.encode())

    def save(self, *, every_s: float = 0.0) -> None:
        """Save logs that have changed, unless the last save is less than `every_s` ago, or saving takes too long."""
        began_s = time.monotonic()
        if every_s and began_s < self._next_s:
            return
        stamps = self._stamps()
        for name, stamp in stamps.items():
            if self._saved.get(name) != stamp:
                with suppress(FileNotFoundError):  # Inspect has removed it
                    write_bytes(join(self._kept, name), Path(self.folder, name).read_bytes())
        for name in self._saved.keys() - stamps.keys():
            with suppress(FileNotFoundError):
                remove(join(self._kept, name))
        self._saved = stamps
        ended_s = time.monotonic()
        self._next_s = ended_s + max(every_s, (ended_s - began_s) / WRITING_SHARE)

    def remove(self) -> None:
        """Remove what is saved: the evaluation has ended."""
        with suppress(FileNotFoundError):
            remove_folder(self._unfinished)

    def _stamps(self) -> dict[str, Stamp]:
        stamps = {}
        for file in Path(self.folder).rglob("*.eval"):
            with suppress(FileNotFoundError):
                state = file.stat()
                stamps[file.relative_to(self.folder).as_posix()] = state.st_mtime_ns, state.st_size
        return stamps

"""Writes the progress of a running function beside its output (`storage/output/notes/progress.py`)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from marin_resources.step_api.progress import Unheard
from marin_resources.storage.output.notes.progress import Progress, write_progress

FIRST_NOTE_S, EVERY_S = 2.0, 15.0

log = logging.getLogger(__name__)


class ProgressWriter(Unheard):
    """Counts the steps that a function reports, in no time; another thread notes them."""

    def __init__(self, write: Callable[[Progress], None]) -> None:
        self._write = write
        self._step: tuple[int, float] | None = None
        """The last step, and when it was reported, by the monotonic clock."""
        self._noted: tuple[int, float] | None = None
        self._numbers: tuple[Mapping[str, float], int | None] = ({}, None)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def resumed(self, step: int | None) -> None:
        if step is not None:
            self.stepped(step)

    def stepped(self, step: int) -> None:
        self._step = (step, time.monotonic())
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pace", daemon=True)
            self._thread.start()

    def numbers(self, numbers: Mapping[str, float], of: int | None) -> None:
        self._numbers = (numbers, of)

    def note(self) -> None:
        """Note the last step, unless that was done. A store that fails is logged."""
        now = self._step
        if now is None or now == self._noted:
            return
        try:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            numbers, of = self._numbers
            self._write(Progress(step=now[0], at=at, steps_per_s=self._rate(now), of=of, numbers=dict(numbers)))
        except Exception as error:  # any error of a store or its client: the function keeps running
            log.warning("the pace cannot be noted now (%s: %s)", type(error).__name__, error)
        self._noted = now

    def end(self) -> None:
        self._ended.set()

    def _rate(self, now: tuple[int, float]) -> float | None:
        if self._noted is None or now[0] < self._noted[0]:
            return None
        return round((now[0] - self._noted[0]) / max(now[1] - self._noted[1], 1e-9), 4)

    def _run(self) -> None:
        wait_s = FIRST_NOTE_S
        while not self._ended.wait(wait_s):
            self.note()
            wait_s = EVERY_S


@contextmanager
def noted_pace(output_path: str, attempt: int) -> Iterator[ProgressWriter]:
    """The listener to the function of an attempt, while the block runs."""
    notes = ProgressWriter(lambda pace: write_progress(output_path, attempt, pace))
    try:
        yield notes
    finally:
        notes.end()

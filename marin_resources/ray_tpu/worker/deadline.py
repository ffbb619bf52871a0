"""Kill this process if a block of code exceeds its time limit: a function in C cannot be interrupted.

In:  the time limit, and a callback that records the time-out, for example beside the output.
Out: nothing if the block ends in time. Else the callback gets a traceback, and the process and its children are killed.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from marin_resources.ray_tpu.worker.end_process import end_process

REPORT_TIMEOUT_S = 20.0
"""Time limit for `on_expired`: it writes to the store, and the store may be what hangs."""
BACKSTOP_S = 10.0
"""This much later the process ends even if none of its threads can run, because C code holds the interpreter's lock (a
regular expression does while it searches)."""
RENEW_BACKSTOP_S = 1.0
"""Shortest interval between two renewals of the backstop: each starts a thread."""


@contextmanager
def deadline(
    timeout_s: float | None, on_expired: Callable[[str], None], *, backstop: bool = True
) -> Iterator[Callable[[], None]]:
    """Kill this process if the block takes longer than `timeout_s`; None: no limit.

    Before that, call `on_expired` in another thread with a traceback of the block. From then on the block cannot end:
    its thread waits for the end of the process. Yields a function that restarts the limit. A process may have
    one deadline with a `backstop` at a time.
    """
    if timeout_s is None:
        yield lambda: None
        return
    watchdog = _Watchdog(timeout_s, sys._getframe(2), on_expired, backstop=backstop)
    watchdog.start()
    try:
        yield watchdog.renew
    finally:
        watchdog.finish()


class _Watchdog:
    """Lets either the block finish or the deadline expire, never both."""

    def __init__(
        self, timeout_s: float, block: FrameType, on_expired: Callable[[str], None], *, backstop: bool
    ) -> None:
        self._timeout_s, self._block, self._on_expired = timeout_s, block, on_expired
        self._backstop = backstop
        self._thread = threading.get_ident()
        self._decided = threading.Lock()
        """Acquired by the first of the two and never released."""
        self._finished = threading.Event()
        self._began_s = self._armed_s = time.monotonic()

    def start(self) -> None:
        self._arm()
        threading.Thread(target=self._watch, name="deadline", daemon=True).start()

    def renew(self) -> None:
        """Restart the time limit. After the block, whose threads may still report, this has no effect."""
        self._began_s = time.monotonic()
        if self._began_s - self._armed_s >= RENEW_BACKSTOP_S and not self._finished.is_set():
            self._arm()
            if self._finished.is_set():  # meanwhile: the backstop would end what the process does next
                self._disarm()

    def finish(self) -> None:
        """The block has ended. Does not return if the deadline expired first."""
        self._decided.acquire()
        self._finished.set()
        self._disarm()

    def _arm(self) -> None:
        self._armed_s = time.monotonic()
        if self._backstop:
            faulthandler.dump_traceback_later(self._timeout_s + REPORT_TIMEOUT_S + BACKSTOP_S, exit=True, file=2)

    def _disarm(self) -> None:
        if self._backstop:
            faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        while (left_s := self._began_s + self._timeout_s - time.monotonic()) > 0:
            if self._finished.wait(left_s):
                return
        self._expire()

    def _expire(self) -> None:
        """The time limit is over. Returns only if the block finished first."""
        if self._decided.acquire(blocking=False):
            text = self._traceback()
            end_process(lambda: self._on_expired(text), REPORT_TIMEOUT_S)

    def _traceback(self) -> str:
        """Return the traceback of the block's thread, from the block on."""
        frames = list(traceback.walk_stack(sys._current_frames()[self._thread]))
        within = next((i for i, (frame, _) in enumerate(frames, start=1) if frame is self._block), len(frames))
        lines = traceback.StackSummary.extract(reversed(frames[:within])).format()
        return "".join(["Traceback (most recent call last):\n", *lines])

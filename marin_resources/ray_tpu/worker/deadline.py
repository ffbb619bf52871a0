"""Kill this process if a block of code exceeds its time limit: a function in C cannot be interrupted.

In:  the time limit, and a callback that records the time-out, for example beside the output.
Out: nothing if the block ends in time. Else the callback gets a traceback, and the process and its children are killed.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
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


@contextmanager
def deadline(timeout_s: float | None, on_expired: Callable[[str], None]) -> Iterator[None]:
    """Kill this process if the block takes longer than `timeout_s`; None: no limit.

    Before that, call `on_expired` in another thread with a traceback of the block. From then on the block cannot end:
    its thread waits for the end of the process. A process may have one deadline at a time.
    """
    if timeout_s is None:
        yield
        return
    guard = _Guard(threading.get_ident(), sys._getframe(2), on_expired)
    timer = threading.Timer(timeout_s, guard.expire)
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(timeout_s + REPORT_TIMEOUT_S + BACKSTOP_S, exit=True, file=2)
    try:
        yield
    finally:
        guard.finish()
        timer.cancel()
        faulthandler.cancel_dump_traceback_later()


class _Guard:
    """Lets either the block finish or the deadline expire, never both."""

    def __init__(self, thread: int, block: FrameType, on_expired: Callable[[str], None]) -> None:
        self._thread, self._block, self._on_expired = thread, block, on_expired
        self._decided = threading.Lock()
        """Acquired by the first of the two and never released."""

    def finish(self) -> None:
        """The block has ended. Does not return if the deadline expired first."""
        self._decided.acquire()

    def expire(self) -> None:
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

"""A block of code that has to be over in time, or else its process ends: a function in C cannot be interrupted.

In:  how long it may take, and what is to be done if it takes longer (note it beside the output, say).
Out: nothing, if it is over in time. Else the process and its children are killed, after it was told where it hung.
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

TELL_TIMEOUT_S = 20.0
"""So long `expired` may take: a note and a log go to a store, which may be what hangs."""
BACKSTOP_S = 10.0
"""So much later the process ends even if no thread of it can run: one in C has kept Python's lock (a regular expression
does, for as long as it searches)."""


@contextmanager
def deadline(timeout_s: float | None, expired: Callable[[str], None]) -> Iterator[None]:
    """End this process if the block is not over in `timeout_s`; None: it may take for ever.

    Before that, `expired` is called in another thread with a traceback: where the block is. By then the block can end
    no more, whatever it still does: its thread waits for the process's end. One deadline at a time in a process.
    """
    if timeout_s is None:
        yield
        return
    guard = _Guard(threading.get_ident(), sys._getframe(2), expired)
    timer = threading.Timer(timeout_s, guard.expire)
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(timeout_s + TELL_TIMEOUT_S + BACKSTOP_S, exit=True, file=2)
    try:
        yield
    finally:
        guard.require_in_time()
        timer.cancel()
        faulthandler.cancel_dump_traceback_later()


class _Guard:
    """Either the block is over first, or the deadline: never both."""

    def __init__(self, thread: int, block: FrameType, expired: Callable[[str], None]) -> None:
        self._thread, self._block, self._expired = thread, block, expired
        self._decided = threading.Lock()
        """Taken for good by whichever is first."""

    def require_in_time(self) -> None:
        """The block is over. Does not return if the deadline was first."""
        self._decided.acquire()

    def expire(self) -> None:
        """The deadline is over. Returns only if the block was first."""
        if self._decided.acquire(blocking=False):
            text = self._where()
            end_process(lambda: self._expired(text), TELL_TIMEOUT_S)

    def _where(self) -> str:
        """The traceback of the block's thread, from the block on."""
        frames = list(traceback.walk_stack(sys._current_frames()[self._thread]))
        within = next((i for i, (frame, _) in enumerate(frames, start=1) if frame is self._block), len(frames))
        lines = traceback.StackSummary.extract(reversed(frames[:within])).format()
        return "".join(["Traceback (most recent call last):\n", *lines])

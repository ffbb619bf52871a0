"""The signals that end a run, SIGINT and SIGTERM, as items of a queue.

Dagster 1.13.27 handles both alike, keeps neither's number, and raises an error wherever the main thread is. Here the
main thread takes the signal when it is ready for it. A `queue.SimpleQueue` may be filled in a handler of signals.

Related: dagster-io/dagster#14051. Without this, a run cannot distinguish Ctrl-C from a redeployment.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_put(put: Callable[[Any], None]) -> Iterator[None]:
    """Call `put` with each of these signals in this block. Python handles signals in the main thread alone: in another
    thread the block changes nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        put(signal.Signals(number))

    handlers = {number: signal.signal(number, handle) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

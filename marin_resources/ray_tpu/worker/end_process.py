"""End this process for good, with all that it started, after some last words.

A function in C cannot be interrupted from another thread, so what has to end it ends the process. What it has given to
Ray ends too: Ray ends the tasks of an owner that is dead.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable

import psutil

from marin_resources.ray_tpu.log.pump_process import pump_pids


def end_process(last_words: Callable[[], None], timeout_s: float) -> None:
    """Kill this process and its children, after `last_words` or `timeout_s`. Does not return."""
    speaker = threading.Thread(target=last_words, name="last-words", daemon=True)
    speaker.start()
    speaker.join(timeout_s)  # the network may be what is broken
    kill_children()
    os.kill(os.getpid(), signal.SIGKILL)


def kill_children() -> None:
    """Kill all that this process started, and what that has started, but not the pumps of its log: they end by
    themselves, after its last lines."""
    pumps = pump_pids()
    for child in psutil.Process().children(recursive=True):
        if child.pid not in pumps:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()

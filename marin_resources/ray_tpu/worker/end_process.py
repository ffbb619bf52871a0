"""Kill this process and its children after a last action.

A function in C cannot be interrupted from another thread, so the process is killed instead. Its Ray tasks end too: Ray
cancels the tasks of a dead owner.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable

import psutil

from marin_resources.ray_tpu.companion import companion_pids


def end_process(before_exit: Callable[[], None], timeout_s: float) -> None:
    """Call `before_exit` in a thread, wait for it up to `timeout_s`, kill this process and its children. No return."""
    thread = threading.Thread(target=before_exit, name="before-exit", daemon=True)
    thread.start()
    thread.join(timeout_s)  # the network may be broken
    kill_children()
    os.kill(os.getpid(), signal.SIGKILL)


def kill_children() -> None:
    """Kill all descendants of this process, except its companions, which end by themselves."""
    kept = companion_pids()
    for child in psutil.Process().children(recursive=True):
        if child.pid not in kept:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()

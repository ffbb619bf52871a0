"""Kill this process and its descendants after a last action.

A function in C cannot be interrupted from another thread, so the process is killed instead. Its Ray tasks end too: Ray
cancels the tasks of a dead owner.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from marin_resources.ray_tpu.worker.process_tree import kill_descendants


def end_process(before_exit: Callable[[], None], timeout_s: float) -> None:
    """Call `before_exit` in a thread, wait for it up to `timeout_s`, kill this process and its descendants."""
    thread = threading.Thread(target=before_exit, name="before-exit", daemon=True)
    thread.start()
    thread.join(timeout_s)  # the network may be broken
    kill_descendants()
    os.kill(os.getpid(), signal.SIGKILL)

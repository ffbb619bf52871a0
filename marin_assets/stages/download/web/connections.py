"""The limit of connections of this machine to a server, for all its processes: a server counts them by address.

A connection holds a lock of a file in the temporary folder. The lock of a process that was killed is free at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import tempfile
import threading
from typing import IO

from marin_assets.stages.download.web.faults import DownloadError, wait

LONGEST_TURN_S = 0.1


def acquire_connection(origin: str, most: int, stop: threading.Event) -> IO[bytes]:
    """Wait until fewer than `most` connections to an origin are held. Return the lock, which `close` releases.

    Raises DownloadError if `stop` is set, or the folder belongs to another user.
    """
    folder = os.path.join(tempfile.gettempdir(), f"marin-connections-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.lstat(folder).st_uid != os.getuid():
        raise DownloadError(
            f"The folder {folder!r} belongs to another user. Remove it, or set TMPDIR to another folder."
        )
    name = hashlib.sha256(origin.encode()).hexdigest()[:16]
    while True:
        for number in range(most):
            lock = open(os.path.join(folder, f"{name}-{number}"), "ab")  # noqa: SIM115
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except BlockingIOError:
                lock.close()
        wait(stop, random.uniform(0.1, 1.0) * LONGEST_TURN_S)

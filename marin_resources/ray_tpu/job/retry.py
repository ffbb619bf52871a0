"""Retry reads and writes of a job's note while the store is unavailable."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from marin_resources.storage.control.protocol import UnavailableError

T = TypeVar("T")

OUTAGE_TIMEOUT_S = 600.0
"""Time limit for retries of an unavailable store: the work is done, or a run waits for it."""
RETRY_PAUSE_S = 5.0


def retry_while_unavailable(act: Callable[[], T]) -> T:
    """Return the result of `act`, retried for up to 10 minutes while the store is unavailable."""
    end_s = time.monotonic() + OUTAGE_TIMEOUT_S
    while True:
        try:
            return act()
        except UnavailableError as error:
            if time.monotonic() + RETRY_PAUSE_S > end_s:
                raise
            print(f"{error} Retrying in {RETRY_PAUSE_S:g} s.", flush=True)
            time.sleep(RETRY_PAUSE_S)

"""Failures that may pass, and the tries that they get.

A fault is tried again after the wait that the server states, or after one that doubles. Tries are counted from the last
one that made progress; a server that sends too slowly makes none.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from typing import TypeVar

from marin_assets.stages.download.web.tally import Tally
from marin_resources.types.errors import MarinError

T = TypeVar("T")

REASONS = {
    "connection": "no connection, or one without an answer",
    "cut": "the answer ended early",
    "slow": "the answer came too slowly",
    "limited": "the server's limit of requests",
    "server_error": "an error of the server",
    "forbidden": "the server refused the request",
    "expired": "the storage refused its signed address",
    "range_ignored": "the server sent the whole file in place of a range",
    "wrong_range": "the server sent another range",
    "wrong_size": "the server has another size than the listing",
    "changed": "the server has another state of the file than the listing",
    "wrong_answer": "an answer that is not the server's",
    "wrong_checksum": "the content has another checksum than the listing",
}
TRIES = 8
TRIES_OF = {"range_ignored": 3, "forbidden": 6}
"""A file whose ranges are ignored is then read as one stream. A 403 that is no limit stays."""
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
LONGEST_STATED_WAIT_S = 900.0
"""Limit of a wait that a server states; three times a hub's window."""

log = logging.getLogger(__name__)


class DownloadError(MarinError):
    """Files that cannot be downloaded: one sentence."""


class Fault(Exception):
    """A failure that may pass: its reason, one of REASONS, and a phrase with the values."""

    def __init__(self, reason: str, phrase: str = "", wait_s: float | None = None) -> None:
        super().__init__(phrase or REASONS[reason])
        self.reason, self.wait_s = reason, wait_s


class LastingFaultError(DownloadError):
    """A fault that stayed: one sentence. `reason` is one of REASONS."""

    reason = ""


def persist(
    action: Callable[[], T],
    *,
    subject: str,
    tally: Tally,
    stop: threading.Event,
    progress: Callable[[], int] = lambda: 0,
) -> T:
    """The result of `action`, which is called again after a Fault. `progress` is a number that grows with its success.

    Raises LastingFaultError, and DownloadError if `stop` is set during a wait.
    """
    tries = 0
    while True:
        before = progress()
        try:
            return action()
        except Fault as fault:
            tries = 1 if fault.reason != "slow" and progress() > before else tries + 1
            if tries >= TRIES_OF.get(fault.reason, TRIES):
                raise _lasting(subject, tries, fault) from None
            wait_s = _wait_s(fault, tries)
            tally.retry(fault.reason)
            log.warning("%s: %s; try again in %.0f s", subject, fault, wait_s)
            wait(stop, wait_s)


def wait(stop: threading.Event, seconds: float) -> None:
    """Wait. Raises DownloadError as soon as `stop` is set."""
    if stop.wait(seconds):
        raise stopped()


def stopped() -> DownloadError:
    """The error of a file that is not finished because another one failed, which is the error that is shown."""
    return DownloadError("The download was stopped, as another file failed. Run it again: what is complete is kept.")


def _wait_s(fault: Fault, tries: int) -> float:
    if fault.wait_s is not None:
        return min(fault.wait_s, LONGEST_STATED_WAIT_S)
    return min(FIRST_WAIT_S * 2 ** (tries - 1), LONGEST_WAIT_S) * random.uniform(0.5, 1.0)


def _lasting(subject: str, tries: int, fault: Fault) -> LastingFaultError:
    error = LastingFaultError(
        f"{subject} failed {tries} times in a row, the last time because of {fault.reason!r}: {fault}. Run it again "
        "when the server is well: what is complete is kept."
    )
    error.reason = fault.reason
    return error

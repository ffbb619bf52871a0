"""What goes wrong inside a worker: its clock is off, answers of the store are lost, it dies or stops in mid-work.

All is patched in from outside, in a worker's own process: the protocol knows nothing of it.
"""

from __future__ import annotations

import datetime
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from marin_resources.storage import fault_points
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output import commit
from one_writer import plan
from one_writer.journal import Journal


class Faults:
    """Of one worker. `calm()` says whether the time for faults is over, so that all can end.

    With `comes_late` the worker's first publication is held up, so that somebody is late for certain.
    """

    def __init__(self, chance: random.Random, journal: Journal, calm: Callable[[], bool], comes_late: bool) -> None:
        self._chance, self._journal, self._calm, self._comes_late = chance, journal, calm, comes_late

    def strikes(self, probability: float) -> bool:
        return not self._calm() and self._chance.random() < probability

    def pause(self, where: str, output: str = "", fence: int = 0) -> None:
        """Stop with all threads, until the parent lets this process go on: a writer when another has taken over."""
        self._journal.note("paused", output, fence, where=where)
        os.kill(os.getpid(), signal.SIGSTOP)

    def die(self, where: str) -> None:
        self._journal.note("died", where=where)
        os.kill(os.getpid(), signal.SIGKILL)

    def reach(self, point: str) -> None:
        """In place of `fault_points.reach`."""
        if self.strikes(plan.DIE_AT_A_POINT):
            self.die(point)
        if self.strikes(plan.PAUSE_AT_A_POINT):
            self.pause(point)

    def set_up(self, *, lose_answers: bool) -> None:
        shift_clock(self._chance.choice(plan.CLOCK_OFFSETS_S))
        fault_points.reach = self.reach
        self._watch_commits()
        if lose_answers:
            self._lose_answers()

    def _watch_commits(self) -> None:
        """Journal who has become a writer at the moment it did; stop now and then before the last step."""
        claim, publish = commit.claim_commit, commit.publish_commit

        def claim_commit(path: str, **asked: Any) -> commit.Commit:
            claimed = claim(path, **asked)
            self._journal.note("claimed", name_of(path), claimed.fence, owner=claimed.owner)
            return claimed

        def publish_commit(path: str, claimed: commit.Commit, *rest: Any) -> commit.Commit:
            if self._comes_late or self.strikes(plan.PAUSE_BEFORE_PUBLISHING):
                self._comes_late = False
                self.pause("before publishing", name_of(path), claimed.fence)
            self._journal.note("publishing", name_of(path), claimed.fence)
            published = publish(path, claimed, *rest)
            self._journal.note("published", name_of(path), published.fence, owner=published.owner)
            return published

        commit.claim_commit, commit.publish_commit = claim_commit, publish_commit  # type: ignore[assignment]

    def _lose_answers(self) -> None:
        real = control.write

        def write(path: str, data: bytes, *, expected: str | None) -> str:
            if self.strikes(plan.LOSE_A_WRITE):
                self._journal.note("answer lost", where="before the effect")
                raise UnavailableError("The store is away, for a test.")
            generation = real(path, data, expected=expected)
            if self.strikes(plan.LOSE_A_WRITE):
                self._journal.note("answer lost", where="after the effect")
                raise UnavailableError("The answer was lost, for a test.")
            return generation

        control.write = write


def name_of(path: str) -> str:
    """An output's name, from its path: the last two parts, less its version."""
    return "/".join(path.split("/")[-2:]).removesuffix("-abc123")


def shift_clock(offset_s: float) -> None:
    """Let this process's wall clock be off. The monotonic clock stays, as it does where somebody sets the time."""
    real_time = time.time
    time.time = lambda: real_time() + offset_s

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            return datetime.datetime.now(tz) + datetime.timedelta(seconds=offset_s)

    for name, module in list(sys.modules.items()):
        if name.startswith("marin_resources") and getattr(module, "datetime", None) is datetime.datetime:
            module.datetime = Shifted  # type: ignore[attr-defined]

"""Faults on purpose: answers that are errors, answers that are late, and answers that never come.

Before the effect of a request, so that it has none, or after it, so that the client cannot know that it has one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class Fault:
    bucket: str
    """Requests about this bucket alone, so that tests do not hurt each other."""
    method: str = ""
    """Empty: any."""
    match: str = ""
    """Must be in the request's address (decoded) or in the name of the object that it is about."""
    status: int | None = None
    """The answer; None: the connection is dropped, unless the fault has only a delay."""
    after: bool = False
    """After the effect."""
    delay_s: float = 0.0
    """The time to wait first. With neither a status nor `drop`, this is all that happens."""
    drop: bool = False
    times: int | None = 1
    """The number of requests that it strikes; None: all, until `calm`."""
    probability: float = 1.0
    seed: int = 0
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def strikes(self, method: str, bucket: str, subject: str) -> bool:
        """Whether it is this request's turn; counts."""
        if self.times == 0 or bucket != self.bucket or self.method not in ("", method) or self.match not in subject:
            return False
        if self.probability < 1.0 and self.chance.random() >= self.probability:
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Faults:
    """Those that are armed, first armed first."""

    def __init__(self) -> None:
        self._armed: list[Fault] = []

    def arm(self, fields: dict[str, Any]) -> None:
        self._armed.append(Fault(**fields))

    def calm(self, bucket: str) -> None:
        self._armed = [fault for fault in self._armed if fault.bucket != bucket]

    def left(self, bucket: str) -> int:
        """The number of strikes still to come; faults without a number do not count."""
        return sum(fault.times or 0 for fault in self._armed if fault.bucket == bucket)

    def of(self, method: str, bucket: str, subject: str) -> Fault | None:
        if not self._armed:
            return None
        return next((fault for fault in self._armed if fault.strikes(method, bucket, subject)), None)

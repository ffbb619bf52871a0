"""An observer of a lease that keeps what it is told."""

from __future__ import annotations


class Reports:
    """What a lease has reported."""

    def __init__(self) -> None:
        self.deadlines_s: list[float] = []
        self.losses: list[str] = []
        self.releases = 0

    def renewed(self, deadline_s: float) -> None:
        self.deadlines_s.append(deadline_s)

    def lost(self, reason: str) -> None:
        self.losses.append(reason)

    def released(self) -> None:
        self.releases += 1

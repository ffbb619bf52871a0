"""One entry of the ledger of a step on slices (`storage/output/ledger.py` has its words)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from marin_resources.ray_tpu.slices.host_progress import HostProgress


@dataclass(kw_only=True)
class Try:
    """One try, as mark and record of its attempt have it. Times are in seconds."""

    attempt: int
    number: int
    """In its attempt, from 1."""
    slices: list[str]
    hosts: list[str]
    """Their addresses."""
    devices: int
    """GPUs, or chips of TPUs, of all hosts together."""
    waited_s: float
    started_at: str
    """ISO 8601, UTC: when its hosts were there."""
    ran_s: float | None = None
    """startup + kept + lost. None while it runs, and if its job was lost with it."""
    startup_s: float | None = None
    kept_s: float | None = None
    lost_s: float | None = None
    resumed_from: int | None = None
    """The step of the checkpoint that it went on from."""
    saved_step: int | None = None
    """The step of its last complete checkpoint."""
    cause: str | None = None
    """Why it failed. None while it runs, and if the function returned."""
    host: int | None = None
    """The index of the host with the cause."""
    error: str | None = None

    def end(self, ran_s: float, called_s: float, noted: HostProgress, *, succeeded: bool) -> None:
        """Fill in the times. `called_s`: when host 0 called the function, since the try began."""
        began_s = 0.0 if noted.began_s is None else min(called_s + noted.began_s, ran_s)
        until_s = ran_s if succeeded else began_s
        if not succeeded and noted.saved_s is not None:
            until_s = max(min(called_s + noted.saved_s, ran_s), began_s)
        self.ran_s, self.startup_s = round(ran_s, 3), round(began_s, 3)
        self.kept_s, self.lost_s = round(until_s - began_s, 3), round(ran_s - until_s, 3)
        self.resumed_from, self.saved_step = noted.resumed_from, noted.saved_step

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

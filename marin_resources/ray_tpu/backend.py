"""The seam between a step and whatever computes it: submit a task, wait for its outcome, stop it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from marin_resources.output import Holder
from marin_resources.ray_tpu.task import Task


class End(enum.StrEnum):
    """How a task ended."""

    SUCCESS = "success"
    ALREADY_DONE = "already_done"
    """Someone else completed the output, or took the attempt's number; look again."""
    HELD = "held"
    """Someone else works on the output."""
    FAILED = "failed"
    """The function raised, or returned what cannot be recorded: the same again would fail again."""
    LOST = "lost"
    """The worker died under the task: killed, preempted, crashed."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    end: End
    error: str = ""
    """One sentence."""
    traceback: str = ""
    """The function's own, as text."""
    holder: Holder | None = None


class UnmeetableError(RuntimeError):
    """What the step asks for is nowhere to be had: one sentence."""


class Backend(Protocol):
    """Where tasks run. The same task submitted twice is the same handle."""

    def submit(self, task: Task) -> Any:
        """Start the task or join it; returns a handle. Raises UnmeetableError at once if no node can ever run it."""

    async def wait(self, handle: Any, on_log: Callable[[str], None]) -> Outcome:
        """The task's outcome; `on_log` is given each line that it prints, as it is printed."""

    def stop(self, handle: Any, reason: str) -> None:
        """End the task and all that it started; returns when its worker is gone."""

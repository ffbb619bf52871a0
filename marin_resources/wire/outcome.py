"""The outcome of a task, as its worker reports it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_resources.types.output import Holder


class End(enum.StrEnum):
    """The kind of end of a task."""

    SUCCESS = "success"
    ALREADY_DONE = "already_done"
    """Another writer completed the output, or took its lease or the attempt's number; look again."""
    HELD = "held"
    """Another writer holds the lease of the output."""
    FAILED = "failed"
    """The function raised, or returned a value that cannot be recorded: not retried, as it would fail again."""
    NOT_BEGUN = "not_begun"
    """The job waited for its node for as long as Ray waits, and has ended without a start; submit it again."""
    LOST = "lost"
    """The worker died during the task: killed, preempted or crashed."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    end: End
    error: str = ""
    """One sentence."""
    traceback: str = ""
    """The traceback of the function, as text."""
    holder: Holder | None = None
    crash: str = ""
    """A phrase, how and where a lost worker died by its own fault; equal ones are the same crash. Empty if that is not
    known, or if it was killed or its machine was lost."""
    may_live: bool = False
    """Whether a lost worker may still run. Its attempt is then not marked as stopped."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        fields = {**vars(self), "holder": vars(self.holder) if self.holder else None}
        if not self.crash:  # a process of an earlier version reads it too
            del fields["crash"]
        return fields

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Outcome:
        """Return the outcome. Raises ValueError, KeyError or TypeError for a mapping that is not one."""
        holder = Holder(**fields["holder"]) if fields["holder"] else None
        return Outcome(**{**fields, "end": End(fields["end"]), "holder": holder})

"""`.marin/attempts/<n>.pace.json`: how far the function of an attempt has come, and how fast, for people who look.

It is written while the function runs, and decides nothing. A function that reports no step has none.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from marin_resources.storage.control import control
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.attempts import FOLDER
from marin_resources.storage.paths import join
from marin_resources.types.versioned_json import ControlFileError, Required, VersionedJson

FORMAT_VERSION = 1


class ProgressError(ControlFileError):
    """A pace that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="pace of an attempt",
    newest=FORMAT_VERSION,
    error=ProgressError,
    shape={"step": Required(int), "steps_per_s": float, "at": Required(str), "of": int, "numbers": dict},
    if_damaged="It decides nothing; remove it.",
)


@dataclass(frozen=True, kw_only=True)
class Progress:
    step: int
    """The last one that the function has reported."""
    at: str
    """Time of this note: ISO 8601, UTC, by the worker's clock."""
    steps_per_s: float | None = None
    """Since the note before this one; None in the first, and after a step back."""
    of: int | None = None
    """The number of all steps, if the function has reported it."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """The numbers that it has reported last beside the step, such as its loss."""

    @property
    def left_s(self) -> float | None:
        """Seconds until the last step at this speed; None if that is not known."""
        return (self.of - self.step) / self.steps_per_s if self.of is not None and self.steps_per_s else None


def write_progress(output_path: str, attempt: int, pace: Progress) -> None:
    """Replace the pace of an attempt, from its own worker. Raises what the store raises."""
    fields = {"format_version": FORMAT_VERSION, **dataclasses.asdict(pace)}
    write_bytes(_path(output_path, attempt), json.dumps(fields).encode())


def read_progress(output_path: str, attempt: int) -> Progress | None:
    """The pace; None if the function has reported no step. Raises ControlFileError and UnavailableError."""
    path = _path(output_path, attempt)
    snapshot = control.read(path)
    if snapshot is None:
        return None
    fields = FORMAT.parse(snapshot.data, path)
    return Progress(
        step=fields["step"],
        at=fields["at"],
        steps_per_s=fields.get("steps_per_s"),
        of=fields.get("of"),
        numbers=fields.get("numbers") or {},
    )


def _path(output_path: str, attempt: int) -> str:
    return join(output_path, FOLDER, f"{attempt}.pace.json")

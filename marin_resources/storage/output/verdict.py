"""What the verification of an output found. Pure types."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any


class Problem(enum.StrEnum):
    MISSING = "missing"
    EXTRA = "extra"
    RESIZED = "resized"
    CORRUPTED = "corrupted"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    """One file that is not as it was published."""

    name: str
    """Its path below the output."""
    problem: Problem
    expected: str
    found: str

    def sentence(self) -> str:
        return f"{self.problem} {self.name!r}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    path: str
    findings: tuple[Finding, ...] = ()
    """Sorted by name."""
    files: int = 0
    """In the manifest."""
    bytes: int = 0
    compared_files: int = 0
    """Those of which the bytes were compared too, by their checksums; names and sizes are compared of all."""
    compared_bytes: int = 0
    unverified: str = ""
    """What could not be compared, and why; empty if there is nothing of the kind."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, as far as could be seen."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}

"""The verification of an output: the differences from its manifest. Pure types."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any


class Problem(enum.StrEnum):
    MISSING = "missing"
    EXTRA = "extra"
    RESIZED = "resized"
    CORRUPTED = "corrupted"
    UNREADABLE = "unreadable"
    DAMAGED = "damaged"
    """A control file that the data and their manifest do not depend on."""


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    """One file that differs from the published one."""

    name: str
    """Path of the file below the output."""
    problem: Problem
    expected: str
    found: str

    def sentence(self) -> str:
        return f"{self.problem} {self.name!r}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The result of comparing one output with its manifest."""

    path: str
    findings: tuple[Finding, ...] = ()
    """Sorted by name."""
    files: int = 0
    """Number of files in the manifest."""
    bytes: int = 0
    compared_files: int = 0
    """Files whose checksums were compared too. Names and sizes are compared for every file."""
    compared_bytes: int = 0
    unverified: str = ""
    """The part that could not be compared, and the reason; empty if everything was compared."""

    @property
    def ok(self) -> bool:
        """Whether no difference was found."""
        return not self.findings

    @property
    def data_ok(self) -> bool:
        """Whether the data are as they were published: nothing is found but control files that they do not need."""
        return all(finding.problem is Problem.DAMAGED for finding in self.findings)

    def with_finding(self, finding: Finding) -> Verification:
        return replace(self, findings=tuple(sorted([*self.findings, finding])))

    def counts(self) -> str:
        """The number of findings of each problem, such as "2 missing, 1 resized"."""
        counts = Counter(finding.problem for finding in self.findings)
        return ", ".join(f"{count} {problem}" for problem, count in counts.items())

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}

"""The right to write one output, as the store gives it to a writer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from marin_resources.storage.lease import lease
from marin_resources.storage.output.commit import Commit
from marin_resources.storage.upload.writer import Writer
from marin_resources.types.output import Output


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to write one output: a lease, and a fence that no other process has."""

    output: Output
    path: str
    data_path: str
    """The path that the function writes to: `path`, or the output's below the prefix of another region."""
    attempt: int
    """The fence: it grows with every claim of this output."""
    lease: lease.Lease
    commit: Commit
    began: datetime
    number: int = 1
    """Number of the try of its function: see `Store.begin_again`."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """In a bucket, name and generation of each file of earlier attempts from which this one resumes."""

    @property
    def writer(self) -> Writer:
        return Writer(attempt=self.attempt, owner=self.commit.owner, number=self.number)

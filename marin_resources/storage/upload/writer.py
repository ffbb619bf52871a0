"""The writer of an attempt: each object that its processes upload carries its number and owner as metadata.

So publication recognizes an object that an earlier attempt wrote late (`output/late_writes.py`). In the attempt's own
process an upload also fails before its first byte if the lease is lost.

MARIN_WRITER   number and owner, "5/0f3a…", for the shards and children of the attempt; "5/0f3a…/2" in its second try
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

VARIABLE = "MARIN_WRITER"
METADATA = "marin-writer"
"""The name in an object's metadata."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Writer:
    attempt: int
    owner: str
    """Owner of the lease: new with each acquisition."""
    number: int = 1
    """Number of the try, in an attempt that calls its function again on other hosts."""

    def __str__(self) -> str:
        return f"{self.attempt}/{self.owner}" + (f"/{self.number}" if self.number > 1 else "")

    @staticmethod
    def parse(text: str) -> Writer:
        attempt, owner, *number = text.split("/")
        return Writer(attempt=int(attempt), owner=owner, number=int(number[0]) if number else 1)


class _LeaseCheck:
    """The check of this process that its lease is held. A forked child has no heartbeat, so it checks nothing."""

    def __init__(self) -> None:
        self.function: Callable[[], None] | None = None
        os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        self.function = None


_check = _LeaseCheck()


@contextmanager
def writing_as(writer: Writer | None, check: Callable[[], None] | None = None) -> Iterator[None]:
    """Let all uploads in the block carry this writer, in the whole process and its children. None changes nothing.

    `check` raises LeaseLostError if the lease is lost. A process works for one attempt at a time.
    """
    if writer is None:
        yield
        return
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE], _check.function = str(writer), check
    try:
        yield
    finally:
        _check.forget()
        os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})


def current_writer() -> Writer | None:
    """The attempt that this process writes for; None outside any attempt."""
    text = os.environ.get(VARIABLE)
    return Writer.parse(text) if text else None


def require_lease() -> None:
    """Raise LeaseLostError if this process writes for an attempt and its lease is lost."""
    if (check := _check.function) is not None:
        check()


def stamp() -> dict[str, str]:
    """The metadata of an object that this process uploads."""
    return {METADATA: text} if (text := os.environ.get(VARIABLE)) else {}


def writer_of(metadata: Mapping[str, str] | None) -> Writer | None:
    """The writer of an object, by its metadata; None if another program uploaded it."""
    text = (metadata or {}).get(METADATA)
    return Writer.parse(text) if text else None

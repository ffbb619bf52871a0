"""A delivery at one moment: its files, and a fingerprint of them that changes with each of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Stamps = Mapping[str, str]
"""Name of a file below the delivery -> size and stamp. The stamp is the store's. It is compared for equality alone, so
no clock of a store is read."""


@dataclass(frozen=True, kw_only=True)
class DeliveryListing:
    """A delivery as it is listed."""

    name: str
    stamps: Stamps
    """The files that the pattern matches."""
    bytes: int
    beside: Stamps = field(default_factory=dict)
    """Other files in the delivery's folder: a marker, a manifest."""
    unusable: str = ""
    """Why it cannot be taken as it is, as a phrase: it has a FIFO, or a link to nothing."""

    def has(self, name: str) -> bool:
        """Whether this file is in it: matched by the pattern, or beside."""
        return name in self.stamps or name in self.beside

    @property
    def fingerprint(self) -> str:
        """16 hex digits; equal for equal files, in whatever order they are listed."""
        return fingerprint_of(self.stamps)


def fingerprint_of(stamps: Stamps) -> str:
    """16 hex digits of names, sizes and stamps."""
    digest = hashlib.blake2b(digest_size=8)
    for name in sorted(stamps):
        digest.update(f"{name}\0{stamps[name]}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Change:
    """The difference between the files of a delivery and those that were taken."""

    late: tuple[str, ...]
    """Names that are new."""
    rewritten: tuple[str, ...]
    vanished: tuple[str, ...]

    def describe(self) -> str:
        """As a phrase: "2 files late ('a', 'b'), 1 rewritten ('c')"."""
        counted = ((self.late, "late"), (self.rewritten, "rewritten"), (self.vanished, "vanished"))
        return ", ".join(f"{len(names)} {change} ({_some(names)})" for names, change in counted if names)


def change_between(taken: Stamps, now: Stamps) -> Change:
    """The changes since a delivery was taken."""
    return Change(
        late=tuple(sorted(now.keys() - taken.keys())),
        rewritten=tuple(sorted(name for name in now.keys() & taken.keys() if now[name] != taken[name])),
        vanished=tuple(sorted(taken.keys() - now.keys())),
    )


def _some(names: Iterable[str], shown: int = 3) -> str:
    every = list(names)
    return ", ".join(map(repr, every[:shown])) + (", …" if len(every) > shown else "")

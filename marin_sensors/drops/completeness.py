"""When a drop is complete: by a marker, by a manifest, or because it has not changed for some time."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from marin_sensors.drops.seen import Seen

LINE = re.compile(r"(?P<digest>[0-9a-fA-F]{32,128}) [ *](?P<name>.+)")
"""As `sha256sum` and `md5sum` write it."""


class Completeness(ABC):
    """A rule that says whether a drop is complete."""

    @abstractmethod
    def lacks(self, seen: Seen, unchanged_s: float, read: Callable[[str], bytes]) -> str:
        """What a drop lacks to be complete, as a phrase; empty if it is complete.

        `unchanged_s`: how long the sensor has seen it as it is. `read` returns the bytes of a file in its folder.
        """


@dataclass(frozen=True)
class Settled(Completeness):
    """No file has changed for so many seconds, by this machine's clock."""

    seconds: float

    def lacks(self, seen: Seen, unchanged_s: float, read: Callable[[str], bytes]) -> str:
        if unchanged_s >= self.seconds:
            return ""
        return f"it changed less than {self.seconds:g} s ago"

    def __str__(self) -> str:
        return f"when it has not changed for {self.seconds:g} s"


@dataclass(frozen=True)
class Marked(Completeness):
    """Its folder has a file of this name, which is written last."""

    name: str

    def lacks(self, seen: Seen, unchanged_s: float, read: Callable[[str], bytes]) -> str:
        return "" if seen.has(self.name) else f"it has no {self.name!r} yet"

    def __str__(self) -> str:
        return f"when {self.name!r} is in its folder"


@dataclass(frozen=True)
class Manifested(Completeness):
    """Its folder has a list of checksums of this name, as `sha256sum *` writes it, and all files that it names."""

    name: str

    def lacks(self, seen: Seen, unchanged_s: float, read: Callable[[str], bytes]) -> str:
        if not seen.has(self.name):
            return f"it has no {self.name!r} yet"
        named = []
        for line in read(self.name).decode(errors="replace").splitlines():
            found = LINE.fullmatch(line.strip())
            if line.strip() and found is None:
                return f"{self.name!r} has the line {line[:60]!r}, expected '<checksum>  <file>'"
            if found is not None:
                named.append(found["name"].removeprefix("./"))
        absent = [name for name in named if not seen.has(name)]
        if absent:
            more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
            return f"{self.name!r} names {absent[0]!r}{more}, which has not arrived"
        return "" if named else f"{self.name!r} names no file"

    def __str__(self) -> str:
        return f"when all files of {self.name!r} are in its folder"

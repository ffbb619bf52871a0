"""When a delivery is complete: by a marker, by a manifest, or because it has not changed for some time."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from marin_sensors.deliveries.delivery_listing import DeliveryListing

LINE = re.compile(r"(?P<escaped>\\?)(?P<digest>[0-9a-fA-F]+) [ *](?P<name>.+)")
"""As `sha256sum` and `md5sum` write it; a name with a newline or a backslash in it is escaped."""
ALGORITHMS = {32: "md5", 40: "sha1", 56: "sha224", 64: "sha256", 96: "sha384", 128: "sha512"}
"""By the number of hex digits."""


class DeliveryFiles(Protocol):
    """The files of a delivery, to read."""

    def read(self, name: str) -> bytes:
        """The bytes of a small file in its folder."""

    def checksums(self, algorithms: Mapping[str, str], seen: DeliveryListing) -> Mapping[str, str | OSError]:
        """The checksums of these files by name, or why one cannot be read; without those that are still computed."""


class Completeness(ABC):
    """A rule that decides whether a delivery is complete."""

    @abstractmethod
    def lacks(self, seen: DeliveryListing, unchanged_s: float, files: DeliveryFiles) -> str:
        """The lack of an incomplete delivery, as a phrase; empty if it is complete.

        `unchanged_s`: seconds for which the sensor has seen it as it is.
        """


@dataclass(frozen=True)
class Settled(Completeness):
    """No file has changed for so many seconds, by this machine's clock."""

    seconds: float

    def lacks(self, seen: DeliveryListing, unchanged_s: float, files: DeliveryFiles) -> str:
        if unchanged_s >= self.seconds:
            return ""
        return f"it changed less than {self.seconds:g} s ago"

    def __str__(self) -> str:
        return f"when it has not changed for {self.seconds:g} s"


@dataclass(frozen=True)
class Marked(Completeness):
    """The delivery's folder has a file of this name, which is written last."""

    name: str

    def lacks(self, seen: DeliveryListing, unchanged_s: float, files: DeliveryFiles) -> str:
        return "" if seen.has(self.name) else f"it has no {self.name!r} yet"

    def __str__(self) -> str:
        return f"when {self.name!r} is in its folder"


@dataclass(frozen=True)
class Manifested(Completeness):
    """The delivery's folder has a list of checksums of this name, as `sha256sum *` writes it, and each file that it
    names has that checksum. Each file is read once for that."""

    name: str

    def lacks(self, seen: DeliveryListing, unchanged_s: float, files: DeliveryFiles) -> str:
        if not seen.has(self.name):
            return f"it has no {self.name!r} yet"
        named: dict[str, str] = {}
        for line in filter(None, files.read(self.name).decode(errors="surrogateescape").split("\n")):
            match = LINE.fullmatch(line.removesuffix("\r"))
            if match is None or len(match["digest"]) not in ALGORITHMS:
                return f"{self.name!r} has the line {line[:60]!r}, expected '<checksum>  <file>'"
            name = _unescaped(match["name"]) if match["escaped"] else match["name"]
            named[name.removeprefix("./")] = match["digest"].lower()
        named.pop(self.name, None)  # `sha256sum * > SHA256SUMS`, run twice, lists the list that it begins to write
        return self._compare(named, seen, files) if named else f"{self.name!r} names no file"

    def _compare(self, named: Mapping[str, str], seen: DeliveryListing, files: DeliveryFiles) -> str:
        if absent := [name for name in named if not seen.has(name)]:
            return f"{self.name!r} names {_first(absent)}, which has not arrived"
        computed = files.checksums({name: ALGORITHMS[len(digest)] for name, digest in named.items()}, seen)
        for name, digest in computed.items():
            if isinstance(digest, OSError):
                return f"{name!r} could not be read ({digest.strerror or digest})"
        if wrong := [name for name, digest in computed.items() if digest != named[name]]:
            return f"{_first(wrong)} has another checksum than {self.name!r} names, so it has not arrived whole"
        remaining = len(named) - len(computed)
        return f"{len(computed)} of {len(named)} files are compared with {self.name!r} so far" if remaining else ""

    def __str__(self) -> str:
        return f"when all files of {self.name!r} are in its folder, with the checksums that it names"


def _unescaped(name: str) -> str:
    letters = {"\\n": "\n", "\\r": "\r", "\\\\": "\\"}
    return re.sub(r"\\.", lambda match: letters.get(match[0], match[0]), name)


def _first(names: list[str]) -> str:
    return f"{names[0]!r}{f' and {len(names) - 1} more' if len(names) > 1 else ''}"

"""The two checksums that GCS keeps of an object, both in base64."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import google_crc32c

from fake_gcs.refusals import invalid

PIECE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Checksums:
    crc32c: str
    md5: str | None
    """A composed object has none."""

    def header(self) -> str:
        """As `X-Goog-Hash` spells them."""
        return f"crc32c={self.crc32c}" + (f",md5={self.md5}" if self.md5 else "")

    def refuse_other(self, promised: Mapping[str, Any]) -> None:
        """Raise if the client has promised other checksums than the content has."""
        for key, name, computed in (("md5Hash", "MD5", self.md5), ("crc32c", "CRC32C", self.crc32c)):
            if promised.get(key) not in (None, computed):
                raise invalid(
                    f'Provided {name} hash "{promised[key]}" doesn\'t match calculated {name} hash "{computed}".'
                )


class RunningChecksums:
    """Checksums of bytes that come piece by piece."""

    def __init__(self) -> None:
        self._crc32c, self._md5 = google_crc32c.Checksum(), hashlib.md5(usedforsecurity=False)

    def update(self, piece: memoryview) -> None:
        for start in range(0, len(piece), PIECE):
            self._crc32c.update(bytes(piece[start : start + PIECE]))  # it takes nothing but bytes
        self._md5.update(piece)

    def value(self) -> Checksums:
        return Checksums(crc32c=_base64(self._crc32c.digest()), md5=_base64(self._md5.digest()))


def checksums_of(data: bytes | bytearray | memoryview) -> Checksums:
    running = RunningChecksums()
    running.update(memoryview(data))
    return running.value()


def promised_in_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The checksums in `X-Goog-Hash` and `Content-MD5` of an upload, under the names of an object's fields."""
    promised = {"md5Hash": headers["Content-MD5"]} if "Content-MD5" in headers else {}
    for part in headers.get("X-Goog-Hash", "").split(","):
        kind, _, digest = part.strip().partition("=")
        if kind in ("crc32c", "md5"):
            promised["md5Hash" if kind == "md5" else kind] = digest
    return promised


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()

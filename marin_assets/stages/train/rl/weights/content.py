"""The bytes of a safetensors file that has the digest of its arrays in its header, and so shows whether it is whole.

8 bytes   length of the header, the lowest byte first
header    JSON: name -> type, shape and place of each array; of "__metadata__" the SHA-256 of all that follows
arrays
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from marin_assets.stages.train.errors import TrainError

LENGTH_BYTES = 8
METADATA, DIGEST = "__metadata__", "sha256"
NO_DIGEST = "0" * 64

Content = bytes | bytearray


def empty_content(entries: Mapping[str, Any], size: int) -> tuple[bytearray, int]:
    """Content for `size` bytes of arrays, and the place where they begin. `entries` are those of the header."""
    header = json.dumps({METADATA: {DIGEST: NO_DIGEST}, **entries}).encode()
    header += b" " * (-len(header) % LENGTH_BYTES)
    begin = LENGTH_BYTES + len(header)
    content = bytearray(begin + size)
    content[:begin] = len(header).to_bytes(LENGTH_BYTES, "little") + header
    return content, begin


def set_digest(content: bytearray) -> None:
    """Write the digest of the arrays into the header."""
    at = content.index(NO_DIGEST.encode())
    content[at : at + len(NO_DIGEST)] = _digest_of(content).encode()


def noted_digest(content: Content) -> str:
    """The digest in the header."""
    return str(_header(content)[METADATA][DIGEST])


def verified_digest(content: Content, place: str) -> str:
    """The digest of the arrays. Raises TrainError, with `place`, if that in the header is another."""
    try:
        noted = noted_digest(content)
    except (ValueError, KeyError, TypeError):  # it ends early, or another file
        noted = ""
    if noted != (digest := _digest_of(content)):
        raise TrainError(
            f"The weights from {place} are damaged: their digest is {digest[:12]}, and their header has "
            f"{noted[:12]!r}. Compute the step again from its beginning."
        )
    return digest


def arrays_in(content: Content) -> dict[str, tuple[memoryview, tuple[int, ...]]]:
    """The bytes and the shape of each array, by its name."""
    header, data = _header(content), memoryview(content)[_begin(content) :]
    del header[METADATA]
    return {name: (data[slice(*entry["data_offsets"])], tuple(entry["shape"])) for name, entry in header.items()}


def _begin(content: Content) -> int:
    return LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")


def _header(content: Content) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(content[LENGTH_BYTES : _begin(content)])
    return header


def _digest_of(content: Content) -> str:
    return hashlib.sha256(memoryview(content)[min(_begin(content), len(content)) :]).hexdigest()

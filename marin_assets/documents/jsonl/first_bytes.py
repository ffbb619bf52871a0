"""Detect the kind of a file by its first bytes, and compare it with the kind that its name claims.

A compressed file that is read as lines would be a few bad rows, in place of the thousands of documents that it holds.
"""

from __future__ import annotations

import codecs
import re

from marin_assets.documents.document import DocumentError
from marin_assets.documents.formats import COMPRESSIONS, compression_of, format_of

HEAD_BYTES = 512
PARQUET = ".parquet"
TEXT = "text"
KINDS = {
    ".gz": ("a file compressed with gzip", rb"\x1f\x8b"),
    ".zst": ("a file compressed with zstd", rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    ".bz2": ("a file compressed with bzip2", rb"BZh[1-9]"),
    ".xz": ("a file compressed with xz", rb"\xfd7zXZ\x00"),
    PARQUET: ("parquet", rb"PAR1|PARE"),
    "zip": ("a zip archive", rb"PK[\x03\x05]"),
    "7z": ("a 7z archive", rb"7z\xbc\xaf\x27\x1c"),
    "tar": ("a tar archive", rb"(?s:.{257})ustar"),
    "lz4": ("a file compressed with lz4", rb"\x04\x22\x4d\x18"),
    "arrow": ("an Arrow file", rb"ARROW1|\xff\xff\xff\xff"),
    "avro": ("an Avro file", rb"Obj\x01"),
    "orc": ("an ORC file", rb"ORC"),
    "utf-16": ("text in UTF-16 or UTF-32", rb"\xff\xfe|\xfe\xff|\x00\x00\xfe\xff"),
    "lfs": ("a pointer of Git LFS, without the data", rb"version https://git-lfs"),
    "html": ("an HTML page", rb"\s*<(?i:!doctype html|html)"),
    "array": ("one JSON array", rb"(?:\xef\xbb\xbf)?\s*\[\s*\{"),
}
"""Name or ending -> description of such a file, and the pattern of its first bytes."""
ADVICE = {
    "lfs": "Download the data with `git lfs pull`.",
    "html": "Download it again: the server may have answered with a page for a login or an error.",
    "utf-16": "Convert it to UTF-8.",
}

_PATTERNS = {name: re.compile(pattern) for name, (_, pattern) in KINDS.items()}


def require_named(path: str, head: bytes) -> None:
    """Raise DocumentError if a file that begins with `head` is not of the kind that its name claims."""
    named = PARQUET if format_of(path) == PARQUET else compression_of(path) or TEXT
    kind = _kind(head) or (TEXT if named != TEXT and _is_text(head) else named)
    if head and kind != named:
        actual = "plain text" if kind == TEXT else KINDS[kind][0]
        expected = "lines of text" if named == TEXT else KINDS[named][0]
        raise DocumentError(f"{path!r} is {actual}, expected {expected} by its name. {_advice(kind)}")


def require_lines(path: str, head: bytes) -> None:
    """Raise DocumentError if the decompressed content that begins with `head` has no lines of text."""
    if compression_of(path) and (kind := _kind(head)):
        raise DocumentError(
            f"{path!r} has, once decompressed, the content of {KINDS[kind][0]}, expected lines of text. "
            f"{ADVICE.get(kind, 'Decompress it and name it after its content, or convert it to lines of JSON.')}"
        )


def _kind(head: bytes) -> str:
    return next((name for name, pattern in _PATTERNS.items() if pattern.match(head)), "")


def _is_text(head: bytes) -> bool:
    if len(head) < len(b"PAR1"):  # a truncated file may have less
        return False
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return "\0" not in text


def _advice(kind: str) -> str:
    if kind in (PARQUET, TEXT) or kind in COMPRESSIONS:
        ending = {PARQUET: PARQUET, TEXT: ".jsonl"}.get(kind, f".jsonl{kind}")
        return f"Rename it, so that its name ends with {ending!r}, or download it again."
    return ADVICE.get(kind, "Convert it to lines of JSON, or download it again.")

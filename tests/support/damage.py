"""Damage to the control files of an output: each kind of file, each kind of damage, on a disk and in a bucket."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from marin_resources.storage.files import read_bytes, remove, write_bytes
from marin_resources.storage.paths import is_local, join

FILES = {
    "status": ".executor_status",
    "record": ".executor_info",
    "manifest": ".marin/manifest.json",
    "lease": ".executor_status.lock",
    "mark": ".marin/attempts/1.json",
    "note": ".marin/jobs/2.json",
    "ledger": ".marin/transfers.json",
}


def nested(levels: int) -> Callable[[bytes], bytes]:
    """The file with one more field, so deep."""

    def deepen(whole: bytes) -> bytes:
        deep = b'{"deep": ' + b'{"a":[' * (levels // 2) + b"]}" * (levels // 2)
        return deep + (b"}" if not whole.startswith(b"{") else b"," + whole.strip()[1:])

    return deepen


def with_wrong_types(whole: bytes) -> bytes:
    """Each text, object and list is a number, each number a text."""
    if not whole.startswith(b"{"):
        return b"5"
    fields = {name: "x" if isinstance(value, int | float) else 5 for name, value in json.loads(whole).items()}
    return json.dumps({**fields, "format_version": 1}).encode()


def newer(whole: bytes) -> bytes:
    return json.dumps({**json.loads(whole), "format_version": 99}).encode() if whole.startswith(b"{") else b"ARCHIVED"


TEXTS: dict[str, Callable[[bytes], bytes]] = {
    "binary": lambda whole: b"\xff\xfe\x93\x00binary",
    "cut": lambda whole: whole[: len(whole) // 2] if whole.startswith(b"{") else b"SUCC",
    "list": lambda whole: b"[]",
    "number": lambda whole: b"1" * 5000,
    "types": with_wrong_types,
    "deep": nested(900),
    "deeper": nested(100_000),
    "newer": newer,
    "empty": lambda whole: b"",
}
PLACES = ("absent", "folder", "fifo")
DAMAGES = (*TEXTS, *PLACES)


def damage(output_path: str, file: str, kind: str) -> str:
    """Damage one control file; returns its path."""
    path = join(output_path, FILES[file])
    if kind in TEXTS:
        write_bytes(path, TEXTS[kind](read_bytes(path)))
        return path
    remove(path)
    if kind == "folder":
        Path(path).mkdir() if is_local(path) else write_bytes(join(path, "x"), b"")
    elif kind == "fifo":
        os.mkfifo(path)
    return path

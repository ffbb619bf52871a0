"""`.marin/manifest.json`: every data file of a finished output with its size. Control files and logs are left out."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from marin_resources.storage.files import filesystem_of, join, read_json, write_json

NAME = ".marin/manifest.json"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Manifest:
    files: tuple[tuple[str, int], ...]
    """(relative name, bytes), sorted by name."""

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)

    @property
    def digest(self) -> str:
        """sha256 over names and sizes."""
        return hashlib.sha256(json.dumps(self.files).encode()).hexdigest()

    def summary(self) -> dict[str, Any]:
        return {"files": len(self.files), "bytes": self.bytes, "digest": self.digest}


def take_manifest(output_path: str) -> Manifest:
    """The manifest of what lies below `output_path` now."""
    fs, root = filesystem_of(output_path)
    found = fs.find(root, detail=True).items()
    named = ((name[len(root.rstrip("/")) + 1 :], int(info["size"])) for name, info in found)
    data = ((name, size) for name, size in named if not any(part.startswith(".") for part in name.split("/")))
    return Manifest(files=tuple(sorted(data)))


def write_manifest(output_path: str, manifest: Manifest) -> None:
    files = [{"name": name, "size": size} for name, size in manifest.files]
    write_json(join(output_path, NAME), {"format_version": FORMAT_VERSION, **manifest.summary(), "entries": files})


def read_manifest(output_path: str) -> Manifest | None:
    """The manifest that was published with the output, or None (Marin's outputs have none)."""
    try:
        found = read_json(join(output_path, NAME))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Manifest(files=tuple((entry["name"], entry["size"]) for entry in found["entries"]))

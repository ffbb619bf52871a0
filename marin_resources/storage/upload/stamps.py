"""The writers of the objects below a path, by their metadata. A local disk keeps none.

GCS lists metadata with the objects; S3 needs one request for each object.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import StoreKind, kind_of
from marin_resources.storage.upload.writer import Writer, writer_of

REQUESTS_AT_ONCE = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Stamped:
    """An object that an attempt has uploaded."""

    name: str
    """Path of the object below the listed folder."""
    generation: str
    """Generation of the object, on S3 its entity tag."""
    writer: Writer


def stamped_below(path: str, is_selected: Callable[[str], bool]) -> list[Stamped]:
    """Every object below `path` that carries a writer and whose name is selected, sorted by name."""
    kind = kind_of(path)
    if kind not in (StoreKind.GCS, StoreKind.S3):
        return []
    fs, root = filesystem_of(path)
    start = len(root.rstrip("/")) + 1
    listed = fs.find(root, detail=True).items()
    selected = {name: (place, info) for place, info in listed if is_selected(name := place[start:])}

    def stamped(name: str) -> Stamped | None:
        place, info = selected[name]
        writer = writer_of(info.get("metadata") if kind is StoreKind.GCS else _s3_metadata(fs, place))
        generation = str(info.get("generation") or info["ETag"])
        return Stamped(name=name, generation=generation, writer=writer) if writer is not None else None

    if kind is StoreKind.GCS:
        return [stamp for stamp in map(stamped, sorted(selected)) if stamp is not None]
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        return [stamp for stamp in pool.map(stamped, sorted(selected)) if stamp is not None]


def _s3_metadata(fs: Any, place: str) -> dict[str, str]:
    """The metadata of an object; none if it was removed in the meantime."""
    try:
        return fs.metadata(place, refresh=True)
    except FileNotFoundError:
        return {}

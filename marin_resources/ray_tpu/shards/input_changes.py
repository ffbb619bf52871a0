"""Inputs must stay as they were listed until they are read: a stage would otherwise mix two states of its input.

A file is checked after its shard has read it, where it was read: one stat on a disk, one request in a bucket. The state
of a folder is checked once, after all shards.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from marin_resources.ray_tpu.shards.file_shards import FolderState, folder_state
from marin_resources.storage.files import REQUESTS_AT_ONCE, StoredFile, stored_file
from marin_resources.storage.paths import is_local
from marin_resources.types.errors import MarinError


class InputChangedError(MarinError):
    """An input that was written or removed while a stage worked with it: one sentence."""


def inputs_of(shard: Any) -> Iterator[StoredFile]:
    """Yield every StoredFile in the fields of a shard, in its config too."""
    if isinstance(shard, StoredFile):
        yield shard
    elif dataclasses.is_dataclass(shard):
        for field in dataclasses.fields(shard):
            yield from inputs_of(getattr(shard, field.name))
    elif isinstance(shard, tuple | list):
        for value in shard:
            yield from inputs_of(value)


def require_unchanged(files: Iterable[StoredFile]) -> None:
    """Raise InputChangedError if a file is not in the state in which it was listed. Folders are not checked."""
    listed = list(dict.fromkeys(file for file in files if not isinstance(file, FolderState)))
    for file, now in zip(listed, _states(listed), strict=True):
        if now is None or (now.size_bytes, now.stamp) != (file.size_bytes, file.stamp):
            raise _changed(file.path, _difference(file, now))


def require_unchanged_folders(files: Iterable[StoredFile]) -> None:
    """Raise InputChangedError if the files of a folder are not those of its listing."""
    for path, stamp in dict.fromkeys((file.path, file.stamp) for file in files if isinstance(file, FolderState)):
        try:
            now = folder_state(path).stamp
        except FileNotFoundError:
            now = ""
        if now != stamp:
            raise _changed(path, "files below it were written or removed")


def _states(files: Sequence[StoredFile]) -> list[StoredFile | None]:
    if all(is_local(file.path) for file in files):
        return list(map(_now, files))
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        return list(pool.map(_now, files))


def _now(file: StoredFile) -> StoredFile | None:
    try:
        return stored_file(file.path)
    except FileNotFoundError:
        return None


def _difference(before: StoredFile, now: StoredFile | None) -> str:
    if now is None:
        return "it was removed"
    if now.size_bytes != before.size_bytes:
        return f"it had {before.size_bytes:,} bytes when it was listed, now {now.size_bytes:,}"
    return "it was written again"


def _changed(path: str, how: str) -> InputChangedError:
    return InputChangedError(
        f"The input {path!r} changed while the stage read it: {how}. Run the step again when nothing writes to it."
    )

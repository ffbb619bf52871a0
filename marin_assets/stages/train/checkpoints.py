"""The checkpoints of a training run: `<checkpoints>/step-N/…`, each complete once its metadata.json is.

metadata.json is written last, and not atomically. A run that is killed while it writes or removes a checkpoint leaves
unreadable files. One whose metadata is whole, and whose data cannot be loaded, gets a damaged.json.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from marin_resources.storage.files import exists, folders_in, read_json, remove, remove_folder, stored_files
from marin_resources.storage.paths import join

METADATA, MANIFEST = "metadata.json", "manifest.ocdbt"
DAMAGED = "damaged.json"
"""Beside the metadata of a checkpoint that could not be loaded: the next attempt takes the one before."""
FOLDER = "step-"

log = logging.getLogger(__name__)


def last_checkpoint_step(path: str) -> int | None:
    """Return the step of the newest complete checkpoint below `path`, or None."""
    return max((metadata["step"] for metadata in _complete(path, _names_below(path)).values()), default=None)


def permanent_steps(path: str) -> list[int]:
    """Return the steps of the complete checkpoints below `path` that the run which writes them keeps, ascending."""
    complete = _complete(path, _names_below(path)).values()
    return sorted({metadata["step"] for metadata in complete if not metadata.get("is_temporary")})


def remove_unfinished(path: str, *, also_temporary: bool = False) -> list[str]:
    """Remove incomplete checkpoints below `path`. Returns the names of their folders.

    `also_temporary` removes Levanter's temporary checkpoints too. Nothing else may write below `path` meanwhile.
    """
    names = _names_below(path)
    complete = _complete(path, names)
    kept = {folder for folder, metadata in complete.items() if not (also_temporary and metadata.get("is_temporary"))}
    folders = {name.partition("/")[0] for name in names} | set(
        folders_in(path)
    )  # one may be empty: its files are removed
    removed = sorted({folder for folder in folders if folder.startswith(FOLDER)} - kept)
    for folder in removed:
        log.info("removing the incomplete, damaged or temporary checkpoint %s", join(path, folder))
        remove_checkpoint(join(path, folder))
    return removed


def outdated(path: str, *, keep_last: int, keep_every: int | None) -> list[str]:
    """Return the paths of the permanent checkpoints below `path` that need not be kept: all but the last `keep_last`
    and those of a step that is a multiple of `keep_every`."""
    complete = _complete(path, _names_below(path))
    steps = {metadata["step"]: folder for folder, metadata in complete.items() if not metadata.get("is_temporary")}
    older = sorted(steps)[:-keep_last]
    return [join(path, steps[step]) for step in older if keep_every is None or step % keep_every]


def remove_checkpoint(path: str) -> None:
    """Remove one, its metadata first: a kill leaves an incomplete one, from which no training resumes."""
    with suppress(FileNotFoundError):  # Levanter removes temporary checkpoints in a thread of its own
        if exists(join(path, METADATA)):
            remove(join(path, METADATA))
        remove_folder(path)


def _complete(path: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return folder -> metadata of the complete checkpoints. One that is marked as damaged is none."""
    complete = {}
    damaged = {name.removesuffix(f"/{DAMAGED}") for name in names if name.endswith(f"/{DAMAGED}")}
    for name in names:
        if name.endswith(f"/{METADATA}") and name.removesuffix(f"/{METADATA}") not in damaged:
            with suppress(FileNotFoundError, ValueError):  # removed meanwhile, or half written
                complete[name.removesuffix(f"/{METADATA}")] = read_json(join(path, name))
    return complete


def _names_below(path: str) -> list[str]:
    try:
        return [file.name for file in stored_files(path)]
    except FileNotFoundError:
        return []

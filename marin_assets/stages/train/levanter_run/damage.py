"""Find out whether a checkpoint that cannot be loaded is damaged: its metadata is whole, and its data are not.

TensorStore's error begins with a status. That of a store that does not answer is another one than that of data that are
damaged. What cannot be loaded is read once more, without what the training expects of it: a sound checkpoint of another
model is not damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import levanter.checkpoint
import tensorstore as ts
from levanter.tensorstore_serialization import build_kvstore_spec

from marin_assets.stages.train.checkpoints import DAMAGED, MANIFEST
from marin_assets.stages.train.errors import DamagedCheckpointError, TrainError
from marin_resources.storage.files import exists, stored_files, write_json
from marin_resources.storage.paths import join

STATUSES = ("DATA_LOSS", "NOT_FOUND", "OUT_OF_RANGE")
"""TensorStore's, of data that are wrong, missing or cut."""
ARRAYS = ("zarr.json", ".zarray")
DETAILS = re.compile(r" \[(?:source locations|tensorstore_spec)=")
"""The end of TensorStore's errors, for its own developers."""
MOST_OF_A_REASON = 300


@contextmanager
def damage_named(own: str) -> Iterator[None]:
    """Let Levanter's reads of checkpoints name a damaged one, while the block runs. `own`: the run's own checkpoints,
    of which a damaged one is marked, so that the next attempt takes the one before."""
    original = levanter.checkpoint.load_checkpoint

    def load_checkpoint(tree: Any, checkpoint_path: Any, **settings: Any) -> Any:
        path = str(checkpoint_path)
        try:
            with reading(path):
                return original(tree, path, **settings)
        except DamagedCheckpointError as error:
            if path.startswith(own.rstrip("/") + "/"):
                write_json(join(path, DAMAGED), {"reason": error.reason})
            raise

    levanter.checkpoint.load_checkpoint = load_checkpoint
    try:
        yield
    finally:
        levanter.checkpoint.load_checkpoint = original


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise DamagedCheckpointError in place of an error of the block, if the checkpoint at `path` is damaged."""
    try:
        yield
    except TrainError:
        raise
    except (ValueError, FileNotFoundError) as error:  # TensorStore's errors are ValueErrors
        reason = damage_in(path)
        if reason is None:
            raise
        raise DamagedCheckpointError(path, reason) from error


def damage_in(path: str) -> str | None:
    """The damage in the data of a checkpoint, all of which is read; None without damage, or if the store fails."""
    if not exists(join(path, MANIFEST)):
        is_older_form = any(file.name.endswith(ARRAYS) for file in stored_files(path))
        return None if is_older_form else f"{MANIFEST} is missing"
    try:
        store = ts.KvStore.open({"driver": "ocdbt", "base": build_kvstore_spec(path)}).result()
        keys = store.list().result()
        for key in keys:
            store.read(key).result()
    except ValueError as error:
        reason = DETAILS.split(str(error).replace("\n", " "), maxsplit=1)[0]
        return reason[:MOST_OF_A_REASON] if reason.startswith(STATUSES) else None
    return None if keys else f"{MANIFEST} has no arrays"

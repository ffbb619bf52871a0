"""The model that LoRA adapts, or DPO trains, in a folder where Levanter reads it."""

from __future__ import annotations

import os
from typing import Any

from haliax.partitioning import named_jit

from marin_resources.storage.files import list_files, open_to_read
from marin_resources.storage.mirror import local_path_of
from marin_resources.storage.paths import absolute, is_local, join


def local_start(path: str, folder: str) -> str:
    """Return a local folder with the model: its own on a disk, a copy below `folder` otherwise."""
    path = local_path_of(path)
    if is_local(path):
        return absolute(path)
    local = join(folder, "start", os.path.basename(path.rstrip("/")))
    os.makedirs(local, exist_ok=True)
    for file in list_files(path):
        with open_to_read(file) as source, open(join(local, os.path.basename(file)), "wb") as copy:
            while block := source.read(16 * 1024**2):
                copy.write(block)
    return local


def first_model(config: Any, trainer: Any, converter: Any) -> Any:
    """Return the model before its first step, as `train_lm.main` reads it from `initialize_from_hf`."""
    mapping = trainer.parameter_axis_mapping
    model = converter.load_pretrained(
        config.model.model_type, config=config.model, axis_mapping=mapping, dtype=trainer.mp.compute_dtype
    )
    return named_jit(trainer.mp.cast_to_param, mapping)(model)

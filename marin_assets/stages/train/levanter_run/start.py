"""The model that a training begins with."""

from __future__ import annotations

import os
from typing import Any

import haliax as hax
import jax
from haliax.partitioning import named_jit, round_axis_for_partitioning
from levanter.main import train_lm

from marin_assets.stages.train.start import StartFromHf
from marin_resources.storage.files import list_files, open_to_read
from marin_resources.storage.mirror import local_path_of
from marin_resources.storage.paths import absolute, is_local, join


def local_start(start: StartFromHf, folder: str) -> str:
    """Return a local folder with the model: its own on a disk, a copy below `folder` otherwise."""
    path = local_path_of(start.path)
    if is_local(path):
        return absolute(path)
    local = join(folder, "start", os.path.basename(path.rstrip("/")))
    os.makedirs(local, exist_ok=True)
    for file in list_files(path):
        with open_to_read(file) as source, open(join(local, os.path.basename(file)), "wb") as copy:
            while block := source.read(16 * 1024**2):
                copy.write(block)
    return local


def first_model(config: train_lm.TrainLmConfig, trainer: Any, tokenizer: Any, converter: Any) -> Any:
    """Return the model before its first step, as `train_lm.main` makes it."""
    mapping = trainer.parameter_axis_mapping
    if config.initialize_from_hf:
        model = converter.load_pretrained(
            config.model.model_type, config=config.model, axis_mapping=mapping, dtype=trainer.mp.compute_dtype
        )
        return named_jit(trainer.mp.cast_to_param, mapping)(model)
    model_key = jax.random.split(jax.random.PRNGKey(trainer.config.seed), 4)[2]  # as train_lm.main splits it
    Vocab = round_axis_for_partitioning(hax.Axis("vocab", len(tokenizer)), mapping)
    return named_jit(
        lambda key: trainer.mp.cast_to_param(config.model.build(Vocab, key=key)),
        axis_resources=mapping,
    )(model_key)

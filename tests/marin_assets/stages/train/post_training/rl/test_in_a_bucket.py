"""Reinforcement learning in a bucket: the same bytes as on a disk, sampled in the training's process or in another."""

from __future__ import annotations

from pathlib import Path

import pytest
from nano_training import weights_of
from rl_training import rl_config

from marin_assets.stages.train.rl.rollout import read_rollouts
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_resources.storage.files import list_files, read_bytes, write_bytes
from marin_resources.storage.paths import join

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # warnings of Levanter and its dependencies


@pytest.mark.parametrize("samplers", [0, 1])
def test_a_training_in_a_bucket_is_that_on_a_disk(
    samplers: int, base_path: str, gcs_prefix: str, tmp_path: Path
) -> None:
    start, output = join(gcs_prefix, "base/hf"), join(gcs_prefix, "out")
    for file in list_files(base_path):
        write_bytes(join(start, file.removeprefix(base_path).lstrip("/")), read_bytes(file))
    train_rl(rl_config(base_path, tmp_path, num_train_steps=3))
    there = {"start": FromHuggingFace(path=start), "tokenizer_path": start, "output_path": output}
    train_rl(rl_config(base_path, Path("unused"), num_train_steps=3, samplers=samplers, **there))
    assert read_bytes(join(output, "hf/model.safetensors")) == weights_of(tmp_path)
    assert read_rollouts(output) == read_rollouts(str(tmp_path))

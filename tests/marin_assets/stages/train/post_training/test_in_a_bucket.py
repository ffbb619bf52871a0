"""Chats, the model to begin with, and what comes out, in a bucket: equal to those on a disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nano_training import nano_config, weights_of

from marin_assets.stages.train.train_lm import ChatSpec, FromHuggingFace, LoraSpec, TrainLmConfig, train_lm
from marin_resources.storage.files import list_files, read_bytes, write_bytes
from marin_resources.storage.paths import join

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # warnings of Levanter and its dependencies


def copy(path: str, target: str) -> str:
    for file in list_files(path):
        write_bytes(join(target, file.removeprefix(path).lstrip("/")), read_bytes(file))
    return target


def test_a_training_in_a_bucket_is_that_on_a_disk(
    inputs: Any, caches: Any, base_path: str, gcs_prefix: str, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"chat": ChatSpec(), "lora": LoraSpec(), "num_train_steps": 4}
    here = nano_config(
        TrainLmConfig,
        inputs,
        tmp_path,
        1e-2,
        components={"chats": caches.chats_path},
        start=FromHuggingFace(path=base_path),
        **settings,
    )
    output = join(gcs_prefix, "out")
    there = nano_config(
        TrainLmConfig,
        inputs,
        Path("unused"),
        1e-2,
        components={"chats": copy(caches.chats_path, join(gcs_prefix, "chats"))},
        start=FromHuggingFace(path=copy(base_path, join(gcs_prefix, "base/hf"))),
        **{**settings, "output_path": output},
    )
    made = [train_lm(config) for config in (here, there)]
    assert made[0]["loss_end"] == made[1]["loss_end"]
    for name in ("hf/model.safetensors", "peft/adapter_model.safetensors"):
        assert read_bytes(join(output, name)) == weights_of(tmp_path, name)

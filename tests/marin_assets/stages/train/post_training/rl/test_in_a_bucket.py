"""Reinforcement learning in a bucket: the same bytes as on a disk, sampled in the training's process or in another.

So it is with an evaluation on rewards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nano_training import weights_of
from rl_ledgers import require_exact, require_same_replay
from rl_training import rl_config

from marin_assets.stages.train.rl.environments.target_word import TargetWord
from marin_assets.stages.train.rl.evaluation.evaluate_on_rewards import RlEvalConfig, evaluate_on_rewards
from marin_assets.stages.train.rl.lessons import lesson_of
from marin_assets.stages.train.rl.rollout import read_rollouts
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import list_files, read_bytes, write_bytes
from marin_resources.storage.paths import join

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # warnings of Levanter and its dependencies


@pytest.mark.parametrize("samplers", [0, 1])
def test_a_training_in_a_bucket_is_that_on_a_disk(
    samplers: int, base_path: str, gcs_prefix: str, tmp_path: Path
) -> None:
    start, output = copied(base_path, join(gcs_prefix, "base/hf")), join(gcs_prefix, "out")
    train_rl(rl_config(base_path, tmp_path, num_train_steps=3))
    there = {"start": FromHuggingFace(path=start), "tokenizer_path": start, "output_path": output}
    train_rl(rl_config(base_path, Path("unused"), num_train_steps=3, samplers=samplers, **there))
    assert read_bytes(join(output, "hf/model.safetensors")) == weights_of(tmp_path)
    assert read_rollouts(output) == read_rollouts(str(tmp_path))


def test_a_training_in_the_free_order_in_a_bucket_keeps_to_its_ledger(
    base_path: str, gcs_prefix: str, tmp_path: Path
) -> None:
    output = join(gcs_prefix, "out")
    free: dict[str, Any] = {"order": "free", "samplers": 1, "staleness": 2, "output_path": output}
    config = rl_config(base_path, Path("unused"), num_train_steps=4, **free)
    train_rl(config)
    require_exact(config)
    require_same_replay(config, tmp_path)


def test_an_evaluation_in_a_bucket_is_that_on_a_disk(base_path: str, gcs_prefix: str, tmp_path: Path) -> None:
    there = join(gcs_prefix, "evaluation")
    settings = {"lessons": {"the": lesson_of(TargetWord())}, "examples": 3, "samples": 2, "max_tokens": 8}
    for model, output in ((base_path, str(tmp_path)), (copied(base_path, join(gcs_prefix, "model")), there)):
        evaluate_on_rewards(unwrap_versioned_value(RlEvalConfig(model_path=model, output_path=output, **settings)))
    names = [file.removeprefix(str(tmp_path)).lstrip("/") for file in list_files(str(tmp_path))]
    assert sorted(names) == ["rollouts/step-0000000.parquet", "samples.jsonl", "scores.csv"]
    assert all(read_bytes(join(there, name)) == (tmp_path / name).read_bytes() for name in names)


def copied(folder: str, path: str) -> str:
    for file in list_files(folder):
        write_bytes(join(path, file.removeprefix(folder).lstrip("/")), read_bytes(file))
    return path

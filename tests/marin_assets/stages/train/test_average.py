"""A training that keeps an average of the weights: its numbers are those of the average, which is exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.specs.lora import LoraSpec
from marin_assets.stages.train.specs.optimizer import LoopSpec
from marin_assets.stages.train.specs.start import FromCheckpoint, FromHuggingFace
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig, train_lm
from marin_assets.step.values import unwrap_versioned_value

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("default"),  # warnings of Levanter and its dependencies
    pytest.mark.timeout(1200),
]

TINY = LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1)
AVERAGED = LoopSpec(ema_beta=0.9)


def train(inputs: Any, output: Path, **changes: Any) -> dict[str, Any]:
    settings = {
        "components": inputs.components,
        "tokenizer_path": inputs.tokenizer_path,
        "output_path": str(output),
        "model": TINY,
        "num_train_steps": 12,
        "train_batch_size": 4,
        "steps_per_eval": 5,
        "max_eval_batches": 2,
        "compilation_cache_dir": f"{inputs.tokenizer_path}/../jax",
        "loop": AVERAGED,
    }
    return train_lm(unwrap_versioned_value(TrainLmConfig(**{**settings, **changes})))


@pytest.fixture(scope="module")
def averaged(inputs: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("averaged")
    return output, train(inputs, output)


def test_the_loss_at_the_end_is_that_of_the_exported_model(
    inputs: Any, averaged: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    output, result = averaged
    again = train(
        inputs, tmp_path, start=FromHuggingFace(path=f"{output}/hf"), num_train_steps=2, loop=LoopSpec()
    )  # its first evaluation is of what it begins with, on the same batches
    assert result["loss_end"] == pytest.approx(again["loss_start"], rel=1e-5)
    assert abs(result["loss_end"] - result["loss_end_unaveraged"]) > 0.01, "the weights have another loss"
    assert result["loss_ratio"] == result["loss_end"] / result["loss_start"]
    rows = read_metrics(f"{output}/metrics.jsonl")
    of_average = [row["eval/ema/loss"] for row in rows if "eval/ema/loss" in row]
    assert result["validation_curve"] == [round(loss, 4) for loss in of_average]
    assert (rows[0]["eval/ema/loss"], of_average[-1]) == (rows[0]["eval/loss"], result["loss_end"])


def test_a_training_that_goes_on_begins_at_the_loss_of_the_average(
    inputs: Any, averaged: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    output, result = averaged
    start = FromCheckpoint(checkpoints_path=f"{output}/checkpoints", optimizer_state=True)
    assert train(inputs, tmp_path, start=start, num_train_steps=3)["loss_start"] == result["loss_end"]


def test_an_average_of_factors_begins_as_the_model_that_they_adapt(
    inputs: Any, averaged: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    output, result = averaged
    start = FromHuggingFace(path=f"{output}/hf")
    tuned = train(inputs, tmp_path / "tuned", start=start, lora=LoraSpec(rank=4))
    again = train(
        inputs, tmp_path / "b", start=FromHuggingFace(path=f"{tmp_path}/tuned/hf"), num_train_steps=2, loop=LoopSpec()
    )
    assert tuned["loss_start"] == pytest.approx(result["loss_end"], rel=1e-5)
    assert tuned["loss_end"] == pytest.approx(again["loss_start"], rel=1e-5)
    assert tuned["loss_end"] != tuned["loss_end_unaveraged"]

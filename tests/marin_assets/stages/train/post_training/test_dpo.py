"""A model is trained on preferences: it comes to prefer the chosen answers of pairs that it has not seen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from nano_training import kill_at, losses_of, nano_config, weights_of

from marin_assets.stages.train.config import TrainDpoConfig
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.specs.lora import LoraSpec
from marin_assets.stages.train.specs.optimizer import LoopSpec
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.train_dpo import train_dpo

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # warnings of Levanter and its dependencies

STEPS = 60


def dpo_config(inputs: Any, caches: Any, start: Path, output: Path, **changes: Any) -> TrainDpoConfig:
    settings: dict[str, Any] = {
        "components": {"preferences": caches.preferences_path},
        "start": FromHuggingFace(path=f"{start}/hf"),
        "num_train_steps": STEPS,
        "steps_per_eval": 20,
        **changes,
    }
    return nano_config(TrainDpoConfig, inputs, output, settings.pop("learning_rate", 3e-4), **settings)


@pytest.fixture(scope="module")
def preferring(
    inputs: Any, caches: Any, tuned: tuple[Path, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("preferring")
    return output, train_dpo(dpo_config(inputs, caches, tuned[0], output))


def test_of_held_out_pairs_the_chosen_answer_is_preferred(preferring: tuple[Path, dict[str, Any]]) -> None:
    _, result = preferring
    assert result["loss_start"] == pytest.approx(math.log(2), abs=1e-6)
    assert result["loss_end"] < math.log(2) - 0.05
    assert result["accuracy_start"] == 0, "nothing is preferred to its own reference"
    assert result["accuracy_end"] > 0.7
    assert result["margin_end"] > 0
    assert result["pairs_seen"] == STEPS * 16
    assert result["trained_parameters"] == result["parameters"]


def test_the_metrics_have_rewards_and_margins_of_both_sides(preferring: tuple[Path, dict[str, Any]]) -> None:
    rows = read_metrics(f"{preferring[0]}/metrics.jsonl")
    evaluated = [row for row in rows if "eval/preferences/dpo_accuracy" in row]
    assert [row["step"] for row in evaluated] == [-1, 20, 40, STEPS - 1]
    names = ("loss", "accuracy", "margin_policy", "margin_ref", "chosen_reward", "rejected_reward")
    assert {f"eval/preferences/dpo_{name}" for name in names} <= set(evaluated[-1])
    assert {f"train/dpo_{name}" for name in names} <= set(rows[-1])


def test_the_export_is_the_policy_alone(
    preferring: tuple[Path, dict[str, Any]], tuned: tuple[Path, dict[str, Any]]
) -> None:
    from safetensors.numpy import load_file

    policy, reference = (load_file(f"{path}/hf/model.safetensors") for path in (preferring[0], tuned[0]))
    assert {name: array.shape for name, array in policy.items()} == {n: a.shape for n, a in reference.items()}
    assert any((policy[name] != reference[name]).any() for name in policy)
    assert "generation" in (preferring[0] / "hf/tokenizer_config.json").read_text()
    assert {path.name for path in preferring[0].iterdir()} == {"hf", "checkpoints", "metrics.jsonl", "plots"}


def test_a_killed_run_gives_the_same_weights(
    preferring: tuple[Path, dict[str, Any]],
    inputs: Any,
    caches: Any,
    tuned: tuple[Path, dict[str, Any]],
    tmp_path: Path,
) -> None:
    config = dpo_config(inputs, caches, tuned[0], tmp_path, steps_per_checkpoint=15)
    kill_at("marin_assets.stages.train.train_dpo:train_dpo", config, 40)
    result = train_dpo(config)
    assert result["resumed_from_step"] == 30
    clock = {"resumed_from_step": None, "tokens_per_second": 0, "loading_share": 0}
    assert {**result, **clock} == {**preferring[1], **clock}
    assert weights_of(tmp_path) == weights_of(preferring[0])
    assert losses_of(tmp_path) == losses_of(preferring[0])


def test_factors_learn_it_too_with_the_model_below_as_reference(
    inputs: Any, caches: Any, tuned: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    config = dpo_config(inputs, caches, tuned[0], tmp_path, lora=LoraSpec(), learning_rate=2e-3)
    result = train_dpo(config)
    assert result["loss_start"] == pytest.approx(math.log(2), abs=1e-6)
    assert result["loss_end"] < math.log(2) - 0.05
    assert result["accuracy_end"] > 0.7
    assert result["trained_parameters"] < result["parameters"] / 5
    assert {"hf", "peft"} <= {path.name for path in tmp_path.iterdir()}


def test_an_average_of_factors_begins_as_the_reference_too(
    inputs: Any, caches: Any, tuned: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    loop = LoopSpec(ema_beta=0.8)
    config = dpo_config(inputs, caches, tuned[0], tmp_path, lora=LoraSpec(), learning_rate=2e-3, loop=loop)
    result = train_dpo(config)
    assert result["loss_start"] == pytest.approx(math.log(2), abs=1e-6)
    assert result["loss_end"] < math.log(2) - 0.05

"""Factors are trained beside the parameters of a model, and exported merged and alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from nano_training import kill_at, nano_config, weights_of

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.train_lm import ChatSpec, FromHuggingFace, LoraSpec, TrainLmConfig, train_lm

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # warnings of Levanter and its dependencies

STEPS = 80


def lora_config(inputs: Any, caches: Any, start_path: str, output: Path, **changes: Any) -> TrainLmConfig:
    settings: dict[str, Any] = {"lora": LoraSpec(alpha=32.0), "num_train_steps": STEPS, **changes}
    return nano_config(
        TrainLmConfig,
        inputs,
        output,
        1e-2,
        components={"chats": caches.successors_path},
        start=FromHuggingFace(path=start_path),
        chat=ChatSpec(),
        **settings,
    )


@pytest.fixture(scope="module")
def start_path(tuned: tuple[Path, dict[str, Any]]) -> str:
    """A model that doubles digits."""
    return f"{tuned[0]}/hf"


@pytest.fixture(scope="module")
def adapted(
    inputs: Any, caches: Any, start_path: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("adapted")
    return output, train_lm(lora_config(inputs, caches, start_path, output))


def test_the_loss_on_held_out_chats_of_another_task_falls(adapted: tuple[Path, dict[str, Any]]) -> None:
    _, result = adapted
    assert result["loss_end"] < 0.4 * result["loss_start"]
    assert result["trained_parameters"] < result["parameters"] / 5


def test_the_merged_model_is_the_base_and_its_factors(adapted: tuple[Path, dict[str, Any]], start_path: str) -> None:
    """PEFT's formula, on PEFT's files: W + alpha / rank * B A."""
    import numpy as np
    from safetensors.numpy import load_file

    base, merged = load_file(f"{start_path}/model.safetensors"), load_file(f"{adapted[0]}/hf/model.safetensors")
    factors = load_file(f"{adapted[0]}/peft/adapter_model.safetensors")
    config = json.loads((adapted[0] / "peft/adapter_config.json").read_text())
    assert (config["peft_type"], config["base_model_name_or_path"]) == ("LORA", start_path)
    scale = config["lora_alpha"] / config["r"]
    changed = set()
    for name, weight in merged.items():
        of_layer = f"base_model.model.{name.removesuffix('.weight')}.lora_"
        if f"{of_layer}A.weight" in factors:
            expected = base[name] + scale * factors[f"{of_layer}B.weight"] @ factors[f"{of_layer}A.weight"]
            np.testing.assert_allclose(weight, expected, atol=2e-5)
            changed.add(name.split(".")[-2])
        else:
            np.testing.assert_array_equal(weight, base[name])
    assert changed == set(config["target_modules"]) == {
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"
    }  # fmt: skip


def test_a_checkpoint_has_the_factors_alone(
    adapted: tuple[Path, dict[str, Any]], tuned: tuple[Path, dict[str, Any]]
) -> None:
    def size(output: Path, step: int) -> int:
        return sum(file.stat().st_size for file in (output / f"checkpoints/step-{step}").rglob("*") if file.is_file())

    assert size(adapted[0], STEPS - 1) < size(tuned[0], 149) / 2


def test_a_killed_run_gives_the_same_weights(
    adapted: tuple[Path, dict[str, Any]], inputs: Any, caches: Any, start_path: str, tmp_path: Path
) -> None:
    config = lora_config(inputs, caches, start_path, tmp_path, steps_per_checkpoint=20)
    kill_at("marin_assets.stages.train.train_lm:train_lm", config, 50)
    assert train_lm(config)["resumed_from_step"] == 40
    for folder in ("hf/model.safetensors", "peft/adapter_model.safetensors"):
        assert weights_of(tmp_path, folder) == weights_of(adapted[0], folder)


def test_names_of_no_layer_are_a_sentence(inputs: Any, caches: Any, start_path: str, tmp_path: Path) -> None:
    config = lora_config(inputs, caches, start_path, tmp_path)
    nothing = dataclasses.replace(config, lora=dataclasses.replace(config.lora, target_modules=("query",)))
    with pytest.raises(TrainError, match=r"No linear layer of the model has a name that ends with one of \['query'\]"):
        train_lm(nothing)

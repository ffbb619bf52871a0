"""What a training needs of the memory of its chips: it is refused where it does not fit, and only there."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from marin_assets.defaults import default_dpo, default_train, grid
from marin_assets.stages.train.config import TrainDpoConfig, TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.memory import memory_of
from marin_assets.stages.train.specs.lora import LoraSpec, factors_of
from marin_assets.stages.train.specs.model import ModelSpec, model_from_hf
from marin_assets.stages.train.specs.optimizer import LoopSpec
from marin_assets.stages.train.specs.presets import model_preset
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, output_path_of, unwrap_versioned_value
from marin_resources.hardware.resources import Resources, gpu, tpu

MIXED = "p=f32,c=bfloat16"
START = FromHuggingFace(path="m")
SETS = InputName.hardcoded("pairs")


def train(model: Any, resources: Resources, **changes: Any) -> Step:
    given = {"components": {}, "tokenizer_path": "t", "precision": MIXED, "train_batch_size": 8, **changes}
    return default_train("big", {}, model, TrainLmConfig(**given), resources=resources)


def prefer(model: Any, resources: Resources, **changes: Any) -> Step:
    config = TrainDpoConfig(components={}, tokenizer_path="t", precision=MIXED, train_batch_size=8, **changes)
    return default_dpo("big", SETS, "m", model, config, resources=resources)


def test_lora_needs_the_state_of_its_factors_alone() -> None:
    model = model_preset("llama_8b")
    with pytest.raises(TrainError, match=r"trains 7\.0 billion .*2 chips of 2 A100-40G needs at least 69 GB"):
        train(model, gpu("A100-40G", 2))
    assert train(model, gpu("A100-40G", 2), lora=LoraSpec(), start=START)
    with pytest.raises(TrainError, match="1 chips of 1 A100-40G needs at least 55 GB"):
        train(model, gpu("A100-40G", 1), lora=LoraSpec(), start=START)
    assert grid(train(model, gpu("A100-40G", 2), lora=LoraSpec(), start=START), {"lora.rank": [8, 64]})


def test_dpo_needs_its_reference_too_and_two_sequences_for_a_pair() -> None:
    model = model_preset("llama_8b")
    assert train(model, tpu("v4-16"), train_batch_size=16)
    assert train(model, gpu("A100-80G", 2))
    with pytest.raises(TrainError, match=r"2 chips of 2 A100-80G needs at least 83 GB"):
        prefer(model, gpu("A100-80G", 2))
    assert prefer(model, gpu("A100-80G", 2), lora=LoraSpec())


def test_an_average_of_the_weights_is_counted() -> None:
    model = model_preset("llama_8b")
    with pytest.raises(TrainError, match="needs at least 83 GB"):
        train(model, gpu("A100-80G", 2), loop=LoopSpec(ema_beta=0.99))


def test_the_sequences_that_a_chip_takes_at_a_time_are_counted() -> None:
    model = model_preset("llama_1_4b")
    assert train(model, gpu("L4", 1), train_batch_size=4)
    with pytest.raises(TrainError, match=r"at least 52 GB with 64 sequences .* or per_device_parallelism=1 would fit"):
        train(model, gpu("L4", 1), train_batch_size=64)
    assert train(model, gpu("L4", 1), train_batch_size=64, loop=LoopSpec(per_device_parallelism=4))
    assert train(model, gpu("L4", 1), train_batch_size=64, loop=LoopSpec(train_seq_len=128)), "short sequences"
    grows = LoopSpec(batch_schedule=((0, 4), (50, 64)))
    with pytest.raises(TrainError, match="with 64 sequences"):
        train(model, gpu("L4", 1), train_batch_size=4, loop=grows)
    assert train(model, tpu("v5litepod-4", slices=(1, 4)), train_batch_size=128), "by the most slices that it may take"


def test_the_shape_of_an_exported_model_is_known() -> None:
    base = train(model_preset("llama_70b"), tpu("v5p-32"), train_batch_size=16)
    exported = model_from_hf(output_path_of(base, "hf"))
    with pytest.raises(TrainError, match=r"trains 68\.5 billion parameters"):
        train(exported, gpu("H100", 8))
    again = train(exported, tpu("v5p-32"), train_batch_size=16)
    with pytest.raises(TrainError, match=r"trains 68\.5 billion parameters"):
        train(model_from_hf(output_path_of(again, "hf"), max_seq_len=128), gpu("H100", 8))
    assert train(model_from_hf("gs://models/unknown"), gpu("H100", 1)), "its run compares with the devices"


@pytest.mark.parametrize("kind", ["V100", "A100", "B300", "GB200", "GB300"])
def test_where_devices_of_one_name_differ_the_largest_decides(kind: str) -> None:
    with pytest.raises(TrainError, match=f"4 chips of 4 {kind} needs at least 3"):
        train(model_preset("llama_70b"), gpu(kind, 4))
    assert train(model_preset("llama_1_4b"), gpu(kind, 1), train_batch_size=1)


def test_a_step_without_a_default_is_compared_too() -> None:
    with pytest.raises(TrainError, match=r"trains 68\.5 billion"):
        dataclasses.replace(train(model_preset("llama_70b"), tpu("v5p-32")), resources=gpu("H100", 8))


def test_the_state_of_each_kind_of_training_is_by_parameter() -> None:
    model = unwrap_versioned_value(ModelSpec(num_layers=2))
    common: dict[str, Any] = {"components": {}, "tokenizer_path": "t", "output_path": "o", "precision": MIXED}
    lora = LoraSpec(rank=4, target_modules=("q_proj", "down_proj"))
    factors = 2 * 4 * ((4096 + 4096) + (14336 + 4096))
    assert factors_of(unwrap_versioned_value(lora), model) == factors

    def bytes_of(kind: type[TrainLmConfig], **changes: Any) -> int:
        return memory_of(unwrap_versioned_value(kind(**common, **changes)), model, 10**6).state_bytes

    assert bytes_of(TrainLmConfig) == 18 * 10**6
    assert bytes_of(TrainLmConfig, loop=LoopSpec(ema_beta=0.9)) == 22 * 10**6
    assert bytes_of(TrainDpoConfig) == 20 * 10**6
    assert bytes_of(TrainLmConfig, lora=lora, start=START) == 6 * 10**6 + 12 * factors


class Device:
    """As jax describes one."""

    process_index, device_kind, slice_index = 0, "NVIDIA H100", 0

    def __init__(self, limit: int | None) -> None:
        self.limit = limit

    def memory_stats(self) -> dict[str, int] | None:
        return None if self.limit is None else {"bytes_limit": self.limit}


@pytest.mark.long
def test_a_run_compares_with_the_memory_that_its_devices_have() -> None:
    from marin_assets.stages.train.levanter_run.devices.memory import require_room_on_devices
    from marin_assets.stages.train.levanter_run.models import model_config

    model = dataclasses.replace(model_preset("llama_8b"), vocab_size=128_256)
    given = {"components": {}, "tokenizer_path": "t", "output_path": "o", "model": model}
    config = unwrap_versioned_value(TrainLmConfig(**given, precision=MIXED))
    built = model_config(config.model, "/nowhere")
    require_room_on_devices(config, built, "/nowhere", [Device(None)])  # a CPU
    require_room_on_devices(config, built, "/nowhere", [Device(80 * 10**9)] * 4)
    with pytest.raises(TrainError, match=r"trains 8\.0 billion .* 2 NVIDIA H100 needs at least 8\d GB .* it has 80"):
        require_room_on_devices(config, built, "/nowhere", [Device(80 * 10**9)] * 2)
    tuned = dataclasses.replace(config, lora=unwrap_versioned_value(LoraSpec()))
    require_room_on_devices(tuned, built, "/nowhere", [Device(80 * 10**9)] * 2)


@pytest.mark.long
@pytest.mark.parametrize("targets", [None, ("q_proj", "down_proj")])
def test_the_factors_are_as_many_as_levanter_makes(targets: tuple[str, ...] | None) -> None:
    import equinox as eqx
    import haliax as hax
    import jax
    from levanter.adaptor import LoraAdaptorConfig
    from levanter.adaptor.lora import filter_lora_params
    from levanter.utils.jax_utils import parameter_count

    from marin_assets.stages.train.levanter_run.models import model_config

    model = unwrap_versioned_value(ModelSpec(family="qwen3", num_layers=3, hidden_dim=96, num_heads=3, num_kv_heads=1))
    adaptor = LoraAdaptorConfig(r=4, target_modules=None if targets is None else list(targets))
    key = jax.random.PRNGKey(0)
    build = lambda: adaptor.apply(model_config(model, "/nowhere").build(hax.Axis("vocab", 512), key=key), key=key)  # noqa: E731
    made = parameter_count(filter_lora_params(eqx.filter_eval_shape(build)))
    assert factors_of(unwrap_versioned_value(LoraSpec(rank=4, target_modules=targets)), model) == made

"""Compare the memory that a training needs with that of its chips. Arithmetic alone, of the certain parts.

On each chip are its part of the state, which is spread over the chips of a slice, and the activations of the sequences
that it takes at a time, computed again in the backward pass. The state is, by parameter:

    all are trained    the parameter, its gradient, the optimizer's moments and the copy for the compute
    with LoRA          the parameter and that copy; the others of the factors alone
    with ema_beta      one more of each that is trained
    DPO without LoRA   one more, in the precision of the compute: the reference. A pair is two sequences.

The logits are not counted: Levanter computes them in blocks. XLA needs some more than all this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.sizes import GB, moments_of, size_of
from marin_assets.stages.train.specs.lora import factors_of
from marin_assets.stages.train.specs.model import HuggingFaceModel
from marin_assets.stages.train.specs.optimizer import NamedOptimizerSpec, is_averaged
from marin_assets.stages.train.specs.precision import read_precision
from marin_assets.step.values import InputName, without_versions
from marin_resources.hardware.catalogue import SliceType, find_gpu_type, slice_types
from marin_resources.hardware.resources import Resources, slice_type

BILLION = 10**9


@dataclass(frozen=True, kw_only=True)
class TrainingMemory:
    parameters: int
    state_bytes: int
    """On all chips of a slice together."""
    sequence_bytes: int
    """Activations of one sequence, or of one pair."""
    batch_size: int
    """The largest."""
    at_a_time: int | None
    """Sequences on each chip, if the config sets the number."""

    def sequences_on(self, chips: int) -> int:
        """Sequences that each of so many chips, in all slices, takes at a time."""
        return self.at_a_time or max(self.batch_size // chips, 1)

    def bytes_on(self, chips: int, slices: int = 1) -> float:
        """Bytes of one chip, with `chips` chips in each of `slices` slices."""
        return self.state_bytes / chips + self.sequences_on(chips * slices) * self.sequence_bytes


@dataclass(frozen=True, kw_only=True)
class Chips:
    """That share the state of a training."""

    count: int
    memory_gb: float
    name: str
    slices: int = 1


def memory_of(config: Any, model: Any, parameters: int | None = None) -> TrainingMemory:
    """The memory of a TrainLmConfig or TrainDpoConfig without versioned(), with the shape `model`. Without
    `parameters`, those of the embedding are left out unless the shape has the size of the vocabulary."""
    kind = config.optimizer.kind if isinstance(config.optimizer, NamedOptimizerSpec) else "adam"
    size = size_of(model, vocab_size=0, precision=config.precision, optimizer=kind)
    count = size.parameters if parameters is None else parameters
    is_dpo = hasattr(config, "reference")
    loop = config.loop
    length = (loop.train_seq_len if loop else None) or model.max_seq_len
    stages = (loop.batch_schedule if loop else None) or ((0, config.train_batch_size),)
    return TrainingMemory(
        parameters=count,
        state_bytes=_state_bytes(config, model, count, moments_of(kind), is_dpo=is_dpo),
        sequence_bytes=size.activation_bytes // model.max_seq_len * length * (2 if is_dpo else 1),
        batch_size=max(size for _, size in stages),
        at_a_time=loop.per_device_parallelism if loop else None,
    )


def require_fit(config: Any, resources: Resources | None, step: str) -> None:
    """Raise TrainError for a training that is larger than the memory of the resources. `config` is without versioned().

    The vocabulary is not known yet, so the embedding is left out: what this refuses does not fit with any. The shape of
    a Hugging Face folder is known if a training exports it.
    """
    chips, model = _chips_of(resources), known_model(config.model)
    if chips is None or model is None:
        return
    memory = memory_of(config, model)
    needed_gb = memory.bytes_on(chips.count, chips.slices) / GB
    if needed_gb <= chips.memory_gb:
        return
    fitting = (
        ", ".join(slice_kind.kind for slice_kind in _smallest_slices(memory, chips.slices)) or "none of the catalogue"
    )
    raise TrainError(f"{step!r} {_needs(memory, chips, needed_gb)}. The smallest slices that fit are {fitting}.")


def require_room(config: Any, model: Any, parameters: int, chips: Chips) -> None:
    """Raise TrainError if a training with so many parameters is larger than the memory that the devices have."""
    memory = memory_of(config, model, parameters)
    needed_gb = memory.bytes_on(chips.count, chips.slices) / GB
    if needed_gb > chips.memory_gb:
        raise TrainError(f"This training {_needs(memory, chips, needed_gb)}. Request more or larger devices.")


def known_model(model: Any) -> Any:
    """The shape of a model; None if it is in a folder that no training exports."""
    while isinstance(model, HuggingFaceModel):
        exported = getattr(getattr(model.path, "step", None), "config", None)
        shape = getattr(exported, "model", None) if isinstance(model.path, InputName) else None
        if shape is None:
            return None
        length, shape = model.max_seq_len, without_versions(shape)
        model = shape if length is None else replace(shape, max_seq_len=length)
    return model


def _state_bytes(config: Any, model: Any, parameters: int, moments: int, *, is_dpo: bool) -> int:
    precision = read_precision(config.precision)
    stored, computed = precision.parameter_bytes, precision.compute_bytes
    copy = 0 if stored == computed else computed
    trained = parameters if config.lora is None else factors_of(config.lora, model)
    others = parameters * (stored + copy) + trained * (1 + moments) * stored  # of those trained: gradients and moments
    average = trained * stored if is_averaged(config.loop) else 0
    reference = parameters * computed if is_dpo and config.lora is None else 0
    return others + average + reference


def _chips_of(resources: Resources | None) -> Chips | None:
    """None if they are not known, as for CPUs. Where models of one name differ, the largest."""
    if resources is None:
        return None
    if resources.tpu is not None:
        slice_kind = slice_type(resources.tpu.kind)  # the state is spread over a slice, and each slice has a copy
        slices = max((resources.slices, *resources.more_slices))
        return Chips(count=slice_kind.chips, memory_gb=slice_kind.memory_gb, name=slice_kind.kind, slices=slices)
    kind = None if resources.gpu is None or resources.gpu.kind is None else find_gpu_type(resources.gpu.kind)
    if resources.gpu is None or kind is None or kind.most_memory_gb is None:
        return None
    return Chips(count=resources.gpu.count, memory_gb=kind.most_memory_gb, name=f"{resources.gpu.count} {kind.kind}")


def _smallest_slices(memory: TrainingMemory, slices: int) -> list[SliceType]:
    """The smallest slice of each generation whose chips have the memory."""
    fitting = [
        slice_kind
        for slice_kind in slice_types()
        if memory.bytes_on(slice_kind.chips, slices) <= slice_kind.memory_gb * GB
    ]
    generations = dict.fromkeys(slice_kind.generation for slice_kind in fitting)
    return [min((e for e in fitting if e.generation == g), key=lambda e: e.chips) for g in generations]


def _needs(memory: TrainingMemory, chips: Chips, needed_gb: float) -> str:
    at_a_time = memory.sequences_on(chips.count * chips.slices)
    single_gb = replace(memory, at_a_time=1).bytes_on(chips.count, chips.slices) / GB
    fewer = ", or per_device_parallelism=1 would fit" if at_a_time > 1 and single_gb <= chips.memory_gb else ""
    return (
        f"trains {memory.parameters / BILLION:.1f} billion parameters, for which each of the {chips.count} chips of "
        f"{chips.name} needs at least {needed_gb:,.0f} GB with {at_a_time} sequences at a time, and it has "
        f"{chips.memory_gb:g}{fewer}"
    )

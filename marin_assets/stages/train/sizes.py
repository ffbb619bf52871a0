"""How large a model is: its parameters, the operations of a token, the memory of its training. Arithmetic alone.

The memory is what is certain: parameters, gradients, the optimizer's moments and the copy for the compute, spread over
the chips of one slice, and the activations of one sequence on each chip, computed again in the backward pass. XLA needs
some more. A test compares the counts with the arrays that Levanter makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.specs.model import HuggingFaceModel, shape_of
from marin_assets.stages.train.specs.optimizer import NamedOptimizerSpec
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.accelerators.catalogue import SliceType, find_gpu_type, slice_types
from marin_resources.hardware import Resources, slice_type

GB = 10**9
BILLION = 10**9
MIXED = "p=f32,c=bfloat16"
"""The usual precision: parameters, gradients and moments in float32, the copy and the activations in bfloat16."""
TWO_MOMENTS = ("adam", "adamH", "adopt", "cautious")
"""Optimizers that keep two numbers of each parameter. Of the others one is counted."""
BACKWARD = 3
"""Operations of a training step, in those of its forward pass."""


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    parameters: int
    active_parameters: int
    """Those that a token meets: fewer in a mixture of experts."""
    flops_per_token: float
    """Of training, forward and backward."""
    state_bytes: int
    """Parameters, gradients, moments and the copy for the compute, on all chips together."""
    activation_bytes: int
    """Of one sequence."""

    def bytes_per_chip(self, chips: int) -> float:
        """With the state spread over so many chips, and one sequence on each."""
        return self.state_bytes / chips + self.activation_bytes


def size_of(model: Any, vocab_size: int, *, precision: str = MIXED, optimizer: str = "adam") -> ModelSize:
    """The size of a LlamaSpec or ModelSpec."""
    layers, width, heads = model.num_layers, model.hidden_dim, model.num_heads
    outside = model.vocab_size if getattr(model, "vocab_size", None) is not None else vocab_size
    embedding = outside * width * (1 if model.tie_word_embeddings else 2) + width  # and the last norm
    mlp = 3 * width * model.intermediate_dim
    experts, used = getattr(model, "num_experts", None) or 1, getattr(model, "num_experts_per_tok", None) or 1
    router = width * experts if experts > 1 else 0
    shared = _attention(model) + router
    parameters = embedding + layers * (shared + experts * mlp)
    stored, computed = _bytes_of(precision)
    moments = 2 if optimizer in TWO_MOMENTS else 1
    copy = 0 if stored == computed else computed
    length, head_dim = model.max_seq_len, int(shape_of(model).head_dim)
    scores = (4 * head_dim + 3) * heads * length
    forward = layers * (2 * (_projections(model) + used * mlp + router) + scores) + 2 * width * outside
    return ModelSize(
        parameters=parameters,
        active_parameters=embedding + layers * (shared + used * mlp),
        flops_per_token=BACKWARD * forward,
        state_bytes=parameters * ((2 + moments) * stored + copy),
        activation_bytes=length * computed * _activations_of_a_token(model, used),
    )


def require_fit(config: TrainLmConfig, resources: Resources | None, step: str) -> None:
    """Raise TrainError for a model whose training is larger than the memory of the resources.

    The vocabulary is not known yet, so the embedding is left out: what this refuses does not fit with any.
    """
    if resources is None or isinstance(config.model, HuggingFaceModel) or (found := _chips_of(resources)) is None:
        return
    chips, memory_gb, name = found
    model, precision = unwrap_versioned_value(config.model), unwrap_versioned_value(config.precision)
    kind = config.optimizer.kind if isinstance(config.optimizer, NamedOptimizerSpec) else "adam"
    size = size_of(model, vocab_size=0, precision=precision, optimizer=unwrap_versioned_value(kind))
    needed_gb = size.bytes_per_chip(chips) / GB
    if needed_gb <= memory_gb:
        return
    fitting = ", ".join(each.kind for each in smallest_slices(size)) or "none of the catalogue"
    raise TrainError(
        f"{step!r} trains {size.parameters / BILLION:.1f} billion parameters, for which each of the {chips} chips of "
        f"{name} needs at least {needed_gb:,.0f} GB, and it has {memory_gb:g}. The smallest slices that fit are "
        f"{fitting}."
    )


def smallest_slices(size: ModelSize) -> list[SliceType]:
    """The smallest slice of each generation whose chips have the memory."""
    fitting = [each for each in slice_types() if size.bytes_per_chip(each.chips) <= each.memory_gb * GB]
    generations = dict.fromkeys(each.generation for each in fitting)
    return [min((e for e in fitting if e.generation == g), key=lambda e: e.chips) for g in generations]


def _chips_of(resources: Resources) -> tuple[int, float, str] | None:
    """Chips that share the state, memory of each in GB, name; None if they are not known, as for CPUs."""
    if resources.tpu is not None:
        found = slice_type(resources.tpu.kind)  # the state is spread over a slice, and each slice has a copy
        return found.chips, found.memory_gb, found.kind
    kind = None if resources.gpu is None or resources.gpu.kind is None else find_gpu_type(resources.gpu.kind)
    if resources.gpu is None or kind is None or kind.memory_gb is None:
        return None
    return resources.gpu.count, kind.memory_gb, f"{resources.gpu.count} {kind.kind}"


def _projections(model: Any) -> int:
    """Weights of queries, keys, values and the output, in one layer."""
    head_dim = int(shape_of(model).head_dim)
    return 2 * model.hidden_dim * head_dim * (model.num_heads + model.num_kv_heads)


def _attention(model: Any) -> int:
    """Parameters of attention and norms in one layer."""
    family, head_dim = getattr(model, "family", "llama"), int(shape_of(model).head_dim)
    of_heads = head_dim * (model.num_heads + 2 * model.num_kv_heads)
    bias = of_heads if family == "qwen2" else 0
    if family in ("qwen3", "qwen3_moe"):
        norms = 2 * head_dim
    elif family in ("olmo2", "olmo3"):
        norms = head_dim * (model.num_heads + model.num_kv_heads)
    else:
        norms = 0
    return _projections(model) + bias + norms + 2 * model.hidden_dim


def _activations_of_a_token(model: Any, experts_used: int) -> int:
    """Numbers: the input of each layer, and all that the backward pass of one layer reads."""
    shape = shape_of(model)
    width, heads = model.hidden_dim, model.num_heads + 2 * model.num_kv_heads
    within = 4 * width + int(shape.head_dim) * (heads + model.num_heads) + 3 * experts_used * model.intermediate_dim
    return model.num_layers * width + within


def _bytes_of(precision: str) -> tuple[int, int]:
    """Of a parameter, and of a number that is computed, in a policy of jmp."""
    parts = dict(part.split("=") for part in precision.split(",")) if "=" in precision else {}
    names = (
        (parts.get("p") or parts.get("params"), parts.get("c") or parts.get("compute")) if parts else (precision,) * 2
    )
    stored, computed = (2 if (name is not None and "16" in name) or name == "half" else 4 for name in names)
    return stored, computed

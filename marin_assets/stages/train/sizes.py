"""Size of a model: its parameters, the operations of a token, the memory of its training. Arithmetic alone.

The memory is the certain part: parameters, gradients, the optimizer's moments and the copy for the compute, spread over
the chips of one slice, and the activations of one sequence on each chip, computed again in the backward pass. XLA needs
some more. A test compares the counts with the arrays that Levanter makes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.specs.model import HuggingFaceModel, shape_of
from marin_assets.stages.train.specs.precision import read_precision
from marin_assets.stages.train.specs.presets import LLAMA3_VOCABULARY, PRESETS
from marin_assets.step.values import unwrap_versioned_value, without_versions
from marin_resources.hardware.catalogue import SliceType, slice_types

HEAD = (
    "| preset | family | parameters | active | FLOPs a token | state | activations | smallest slices |",
    "|---|---|---|---|---|---|---|---|",
)

GB = 10**9
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
    """Operations of training, forward and backward."""
    state_bytes: int
    """Parameters, gradients, moments and the copy for the compute, on all chips together."""
    activation_bytes: int
    """Activations of one sequence."""

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
    read = read_precision(precision)
    stored, computed = read.parameter_bytes, read.compute_bytes
    copy = 0 if stored == computed else computed
    length, head_dim = model.max_seq_len, int(shape_of(model).head_dim)
    scores = (4 * head_dim + 3) * heads * length
    forward = layers * (2 * (_projections(model) + used * mlp + router) + scores) + 2 * width * outside
    return ModelSize(
        parameters=parameters,
        active_parameters=embedding + layers * (shared + used * mlp),
        flops_per_token=BACKWARD * forward,
        state_bytes=parameters * ((2 + moments_of(optimizer)) * stored + copy),
        activation_bytes=length * computed * _activations_of_a_token(model, used),
    )


def training_flops(config: Any, vocab_size: int | None) -> float | None:
    """Operations of a whole training, forward and backward, by its TrainLmConfig: None where the config does not
    decide them, or LoRA leaves out a part of the backward pass."""
    plain = without_versions(config)
    model, loop = plain.model, plain.loop
    if isinstance(model, HuggingFaceModel) or plain.lora is not None:
        return None
    vocab_size = getattr(model, "vocab_size", None) or vocab_size
    if vocab_size is None:
        return None
    length = (loop and loop.train_seq_len) or model.max_seq_len
    schedule = (loop and loop.batch_schedule) or ((0, plain.train_batch_size),)
    ends = [*(start for start, _ in schedule[1:]), plain.num_train_steps]
    sequences = sum((end - start) * size for (start, size), end in zip(schedule, ends, strict=True))
    size = size_of(dataclasses.replace(model, max_seq_len=length), vocab_size)
    return size.flops_per_token * length * sequences


def moments_of(optimizer: str) -> int:
    """Count of the numbers that an optimizer keeps of each parameter."""
    return 2 if optimizer in TWO_MOMENTS else 1


def smallest_slices(size: ModelSize) -> list[SliceType]:
    """The smallest slice of each generation whose chips have the memory."""
    fitting = [
        slice_kind for slice_kind in slice_types() if size.bytes_per_chip(slice_kind.chips) <= slice_kind.memory_gb * GB
    ]
    generations = dict.fromkeys(slice_kind.generation for slice_kind in fitting)
    return [min((e for e in fitting if e.generation == g), key=lambda e: e.chips) for g in generations]


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


def preset_table() -> str:
    """Lines of Markdown, with the vocabulary of Llama 3."""
    rows = []
    for name, spec in PRESETS.items():
        model = unwrap_versioned_value(spec)
        size = size_of(model, LLAMA3_VOCABULARY)
        cells = [
            f"`{name}`",
            model.family,
            *_numbers(size),
            ", ".join(slice_kind.kind for slice_kind in smallest_slices(size)),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*HEAD, *rows])


def _numbers(size: ModelSize) -> list[str]:
    return [
        _short(size.parameters),
        _short(size.active_parameters),
        f"{size.flops_per_token:.2e}",
        f"{size.state_bytes / GB:,.1f} GB",
        f"{size.activation_bytes / GB:.2f} GB",
    ]


def _short(count: int) -> str:
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.1f} M"

"""Shapes of models: which architecture, how wide, how deep.

`LlamaSpec` (`config.py`) is the small Llama. `ModelSpec` is a model of any family, and `model_from_hf(path)` one whose
shape is that of a Hugging Face folder. Families have Hugging Face's names, since a trained model is exported as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.specs.bounds import require_above_0, require_at_least
from marin_assets.step.values import unwrap_versioned_value, versioned
from marin_resources.types.near_names import expected_one_of

FAMILIES: Mapping[str, str] = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "olmo3": "Olmo3ForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}
"""Family -> the class of transformers that an export names. Imported and exported, their logits equal transformers'."""
MIXTURES_OF_EXPERTS = ("mixtral", "qwen3_moe")
OWN_HEAD_DIM = ("qwen3", "qwen3_moe")
"""Families whose export keeps a head dimension other than hidden_dim / num_heads."""
ROPES = ("default", "llama3")
SMALLEST: Mapping[str, int] = {
    "max_seq_len": 2,
    "hidden_dim": 1,
    "intermediate_dim": 1,
    "num_layers": 1,
    "num_heads": 1,
    "num_kv_heads": 1,
    "head_dim": 1,
    "num_experts": 1,
    "num_experts_per_tok": 1,
    "vocab_size": 1,
}
"""Field of a shape -> its smallest value. A sequence of one token has nothing to predict."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model of any family: fields of Levanter's config of that family, whose other fields keep their defaults."""

    family: str = versioned("llama")
    """One of FAMILIES."""
    max_seq_len: int = versioned(4096)
    hidden_dim: int = versioned(4096)
    intermediate_dim: int = versioned(14336)
    """Width of the MLP; of each expert in a mixture of experts."""
    num_layers: int = versioned(32)
    num_heads: int = versioned(32)
    num_kv_heads: int = versioned(8)
    head_dim: int | None = versioned(None)
    """None: hidden_dim / num_heads. qwen3 and qwen3_moe take another one."""
    tie_word_embeddings: bool = versioned(False)
    num_experts: int | None = versioned(None)
    """Experts of each layer, of a mixture of experts."""
    num_experts_per_tok: int | None = versioned(None)
    rope: str = versioned("default")
    """Rotary embeddings: "default", or "llama3" for those of Llama 3, which stretch long contexts."""
    rope_theta: float | None = versioned(None)
    """None: 10,000, or 500,000 of "llama3"."""
    vocab_size: int | None = versioned(None)
    """Rows of the embedding. None: those of the tokenizer."""
    gradient_checkpointing: bool = True
    """Compute activations again in the backward pass: a third more compute, and a fraction of the memory."""


@dataclass(frozen=True, kw_only=True)
class HuggingFaceModel:
    """A model whose architecture and shape are those of a Hugging Face folder."""

    path: str
    """Folder with config.json."""
    max_seq_len: int | None = versioned(None)
    """Tokens of a training sequence; None: the longest that the folder's model takes."""
    gradient_checkpointing: bool = True


def check_dimensions(model: Any) -> None:
    """Raise TrainError for a number of a shape that is too small. `model`: any spec, whose values have their types."""
    for name, least in SMALLEST.items():
        require_at_least(name, getattr(model, name, None), least)
    require_above_0("rope_theta", getattr(model, "rope_theta", None))
    experts, used = getattr(model, "num_experts", None), getattr(model, "num_experts_per_tok", None)
    if experts is not None and used is not None and used > experts:
        raise TrainError(f"num_experts_per_tok is {used} and num_experts {experts}, expected at most as many.")


def check_heads(shape: Shape, *, smallest_head: int) -> None:
    """Raise TrainError for heads that do not divide the model."""
    if shape.num_heads % shape.num_kv_heads:
        raise TrainError(
            f"num_heads is {shape.num_heads} and num_kv_heads {shape.num_kv_heads}, "
            "expected num_kv_heads to divide num_heads. Change one of them."
        )
    if shape.head_dim % 1 or shape.head_dim < smallest_head:
        raise TrainError(
            f"hidden_dim={shape.hidden_dim} with num_heads={shape.num_heads} gives a head dimension of "
            f"{shape.head_dim:g}, expected a whole number of at least {smallest_head} so that vLLM "
            "can serve the model. Use fewer heads or a larger hidden_dim."
        )
    if shape.head_dim % 2:
        raise TrainError(
            f"The model has a head dimension of {shape.head_dim:g}, expected an even number: rotary embeddings turn "
            "pairs. Change hidden_dim or num_heads."
        )


def check_model(model: ModelSpec) -> None:
    """Raise TrainError for an unknown family, or for a field that the family does not have."""
    if model.family not in FAMILIES:
        raise TrainError(f"The model's family is {model.family!r}, {expected_one_of(model.family, FAMILIES)}")
    if model.rope not in ROPES:
        raise TrainError(f"The model's rope is {model.rope!r}, {expected_one_of(model.rope, ROPES)}")
    experts = (model.num_experts, model.num_experts_per_tok)
    if model.family in MIXTURES_OF_EXPERTS and None in experts:
        raise TrainError(f"A model of family {model.family!r} needs num_experts and num_experts_per_tok. Set both.")
    if model.family not in MIXTURES_OF_EXPERTS and experts != (None, None):
        raise TrainError(
            f"A model of family {model.family!r} has num_experts={experts[0]!r} and num_experts_per_tok="
            f"{experts[1]!r}, expected None: it has no experts. {' and '.join(MIXTURES_OF_EXPERTS)} have."
        )
    if model.head_dim is not None and model.family not in OWN_HEAD_DIM:
        raise TrainError(
            f"A model of family {model.family!r} has head_dim={model.head_dim!r}, which its export would lose. Leave "
            f"it None, or use one of {', '.join(OWN_HEAD_DIM)}."
        )


def model_from_hf(path: str, *, max_seq_len: int | None = None) -> HuggingFaceModel:
    """The model of a Hugging Face folder, such as `output_path_of(step, "hf")`. Pass its weights as `start`."""
    return HuggingFaceModel(path=path, max_seq_len=versioned(max_seq_len))


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The facts of a model that the training needs before Levanter is loaded."""

    family: str
    max_seq_len: int
    hidden_dim: int
    num_heads: int
    num_kv_heads: int
    head_dim: float
    """A whole number in a valid shape."""


def shape_of(model: Any) -> Shape:
    """The shape of a LlamaSpec or a ModelSpec."""
    head_dim = getattr(model, "head_dim", None) or model.hidden_dim / model.num_heads
    return Shape(
        family=getattr(model, "family", "llama"),
        max_seq_len=model.max_seq_len,
        hidden_dim=model.hidden_dim,
        num_heads=model.num_heads,
        num_kv_heads=model.num_kv_heads,
        head_dim=head_dim,
    )


def length_before_a_run(config: Any) -> int | None:
    """Tokens of a sequence by a TrainLmConfig with versioned fields; None if a folder's config.json has them."""
    loop = unwrap_versioned_value(config.loop)
    if loop is not None and loop.train_seq_len is not None:
        return int(loop.train_seq_len)
    if isinstance(config.model, HuggingFaceModel):
        length = unwrap_versioned_value(config.model.max_seq_len)
        return None if length is None else int(length)
    return int(unwrap_versioned_value(config.model).max_seq_len)


def sequence_length(config: Any, shape: Shape) -> int:
    """Tokens of a training sequence, of a TrainLmConfig."""
    return (config.loop.train_seq_len if config.loop is not None else None) or shape.max_seq_len

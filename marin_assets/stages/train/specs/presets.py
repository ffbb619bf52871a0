"""Models by name, from nano to 70 B: the names and shapes of Marin's experiments, and two mixtures of experts.

`model_preset("llama_8b")`; `from …presets import llama_8b` is the same, as Marin's scripts have it.

The number in a name is about that of the parameters with the vocabulary of Llama 3 (128,256 tokens).
"""

from __future__ import annotations

from collections.abc import Mapping

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.specs.model import ModelSpec
from marin_assets.step.values import versioned
from marin_resources.types.near_names import expected_one_of

LLAMA3_VOCABULARY = 128_256


def _model(
    family: str,
    length: int,
    width: int,
    mlp: int,
    heads: tuple[int, int],
    layers: int,
    *,
    rope: str = "default",
    tied: bool = False,
    theta: float | None = None,
    head_dim: int | None = None,
    experts: tuple[int, int] | None = None,
) -> ModelSpec:
    """`heads`: of queries, and of keys and values. `experts`: of a layer, and those that a token meets."""
    return ModelSpec(
        family=versioned(family),
        max_seq_len=versioned(length),
        hidden_dim=versioned(width),
        intermediate_dim=versioned(mlp),
        num_layers=versioned(layers),
        num_heads=versioned(heads[0]),
        num_kv_heads=versioned(heads[1]),
        head_dim=versioned(head_dim),
        tie_word_embeddings=versioned(tied),
        rope=versioned(rope),
        rope_theta=versioned(theta),
        num_experts=versioned(None if experts is None else experts[0]),
        num_experts_per_tok=versioned(None if experts is None else experts[1]),
    )


PRESETS: Mapping[str, ModelSpec] = {
    "llama_nano": _model("llama", 512, 32, 128, (2, 2), 2),
    "llama_30m": _model("llama", 1024, 128, 448, (2, 2), 4),
    "llama_50m": _model("llama", 1024, 192, 448, (2, 2), 4),
    "llama_75m": _model("llama", 1024, 256, 896, (4, 4), 8),
    "llama_150m": _model("llama", 1024, 512, 1792, (8, 8), 6),
    "llama_300m": _model("llama", 1024, 768, 2688, (12, 12), 12),
    "llama_600m": _model("llama", 1024, 1024, 3584, (16, 8), 24),
    "llama_1_4b": _model("llama", 4096, 2048, 7168, (16, 8), 16),
    "llama_1_9b": _model("llama", 4096, 2048, 7168, (16, 8), 24),
    "llama_3_2_1b": _model("llama", 4096, 2048, 8192, (32, 8), 16, rope="llama3", tied=True),
    "llama_3_5b": _model("llama", 4096, 2560, 8960, (20, 10), 32),
    "llama_8b": _model("llama", 4096, 4096, 14336, (32, 8), 32, rope="llama3"),
    "llama_13b": _model("llama", 4096, 5120, 13824, (40, 8), 40, rope="llama3"),
    "llama_24b": _model("llama", 4096, 6144, 16384, (48, 16), 56, rope="llama3"),
    "llama_32b": _model("llama", 4096, 5120, 27648, (40, 8), 64, rope="llama3"),
    "qwen3_32b": _model("qwen3", 4096, 5120, 27648, (40, 8), 64, rope="llama3"),
    "llama_56b": _model("llama", 4096, 8192, 28672, (64, 8), 64, rope="llama3"),
    "llama_70b": _model("llama", 4096, 8192, 28672, (64, 8), 80, rope="llama3"),
    "mixtral_8x7b": _model("mixtral", 4096, 4096, 14336, (32, 8), 32, theta=1e6, experts=(8, 2)),
    "qwen3_30b_a3b": _model("qwen3_moe", 4096, 2048, 768, (32, 4), 48, theta=1e6, head_dim=128, experts=(128, 8)),
}


def model_preset(name: str) -> ModelSpec:
    """The model of that name. Raises TrainError, with those near it."""
    if name not in PRESETS:
        raise TrainError(f"The model preset is {name!r}, {expected_one_of(name, PRESETS)}")
    return PRESETS[name]


def __getattr__(name: str) -> ModelSpec:
    """The preset of that name, as an attribute of this module."""
    if name not in PRESETS:
        raise AttributeError(f"Module {__name__!r} has no attribute {name!r}.")
    return PRESETS[name]

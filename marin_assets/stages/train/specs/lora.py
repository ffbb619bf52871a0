"""LoRA: the linear layers get small factors, which alone are trained (Hu et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.specs.bounds import require_above_0
from marin_assets.step.values import versioned

FACTORS = ("a", "b")


@dataclass(frozen=True, kw_only=True)
class LoraSpec:
    """A weight W becomes W + alpha / rank * B A. The export has the sum, and the factors beside it as PEFT's folder."""

    rank: int = versioned(8)
    alpha: float = versioned(16.0)
    dropout: float = versioned(0.0)
    target_modules: tuple[str, ...] | None = versioned(None)
    """Ends of the names of layers, such as ("q_proj", "v_proj"); None: all linear layers but the head."""
    zero_factor: str = versioned("a")
    """The factor that is zero at the start, so that the model begins as its base: "a" or "b". The other is random."""


def check_factors(lora: LoraSpec) -> None:
    """Raise TrainError for a LoRA that trains nothing."""
    if lora.rank < 1:
        raise TrainError(f"rank of LoRA is {lora.rank}, expected at least 1.")
    if not 0 <= lora.dropout < 1:
        raise TrainError(f"dropout of LoRA is {lora.dropout}, expected a share from 0 to below 1.")
    if lora.zero_factor not in FACTORS:
        raise TrainError(
            f"zero_factor of LoRA is {lora.zero_factor!r}, expected 'a' or 'b'. If both factors were zero, no gradient "
            "would reach them; if none were, the model would not begin as its base."
        )
    require_above_0("alpha of LoRA", lora.alpha)
    if isinstance(lora.target_modules, str) or lora.target_modules in ((), []):
        raise TrainError(
            f"target_modules of LoRA is {lora.target_modules!r}, expected names of layers such as ('q_proj', "
            "'v_proj'), or None for all."
        )


def factors_of(lora: LoraSpec, model: Any) -> int:
    """Parameters of the factors. Those of experts are left out. `model`: a LlamaSpec or ModelSpec."""
    head_dim = int(getattr(model, "head_dim", None) or model.hidden_dim // model.num_heads)
    width, queries, keys = model.hidden_dim, head_dim * model.num_heads, head_dim * model.num_kv_heads
    layers = {
        "q_proj": (width, queries),
        "k_proj": (width, keys),
        "v_proj": (width, keys),
        "o_proj": (queries, width),
    }
    if getattr(model, "num_experts", None) is None:
        inner = model.intermediate_dim
        layers |= {"gate_proj": (width, inner), "up_proj": (width, inner), "down_proj": (inner, width)}
    ends = lora.target_modules
    adapted = [size for name, size in layers.items() if ends is None or name.endswith(tuple(ends))]
    return model.num_layers * lora.rank * sum(taken + given for taken, given in adapted)

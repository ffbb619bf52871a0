"""Refuse a training that the devices of this host cannot hold, before anything is loaded and compiled for minutes.

Here are known what is not when a step is created: the vocabulary, the shape of a Hugging Face folder, and the memory
that a device really has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import haliax as hax
import jax

from marin_assets.documents.caches.tokens import read_tokenizer
from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.memory import Chips, require_room
from marin_assets.stages.train.sizes import GB
from marin_assets.stages.train.vocabulary import rows_of


@dataclass(frozen=True, kw_only=True)
class BuiltShape:
    """The shape of Levanter's model, by the names of ours."""

    max_seq_len: int
    hidden_dim: int
    intermediate_dim: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    tie_word_embeddings: bool
    head_dim: int | None
    num_experts: int | None
    num_experts_per_tok: int | None


def require_room_on_devices(config: TrainLmConfig, model_config: Any, tokenizer: str, devices: Sequence[Any]) -> None:
    """Raise TrainError if the training needs more memory than the devices have. A CPU does not report its memory."""
    chips = _chips_of(devices)
    if chips is not None:
        vocab_size = rows_of(config.model) or read_tokenizer(tokenizer).get_vocab_size()
        require_room(config, _shape_of(model_config), _count_parameters(model_config, vocab_size), chips)


def _chips_of(devices: Sequence[Any]) -> Chips | None:
    own = [device for device in devices if device.process_index == jax.process_index()]
    limit = ((own[0].memory_stats() if own else None) or {}).get("bytes_limit")
    if limit is None:
        return None
    slices = len({getattr(device, "slice_index", 0) for device in devices})
    return Chips(
        count=len(devices) // slices,
        memory_gb=limit / GB,
        name=f"{len(devices)} {devices[0].device_kind}",
        slices=slices,
    )


def _count_parameters(model_config: Any, vocab_size: int) -> int:
    built = eqx.filter_eval_shape(model_config.build, hax.Axis("vocab", vocab_size), key=jax.random.PRNGKey(0))
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(built) if hasattr(leaf, "shape"))


def _shape_of(model_config: Any) -> BuiltShape:
    def value(*names: str) -> Any:
        return next((getattr(model_config, name) for name in names if getattr(model_config, name, None)), None)

    return BuiltShape(
        max_seq_len=model_config.max_seq_len,
        hidden_dim=model_config.hidden_dim,
        intermediate_dim=value("moe_intermediate_dim", "intermediate_dim"),
        num_layers=model_config.num_layers,
        num_heads=model_config.num_heads,
        num_kv_heads=model_config.num_kv_heads,
        tie_word_embeddings=bool(value("tie_word_embeddings")),
        head_dim=value("head_dim"),
        num_experts=value("n_routed_experts", "num_experts"),
        num_experts_per_tok=value("num_experts_per_tok"),
    )

"""GTE, as gte-base-en-v1.5: BERT with rotary positions and a gated linear unit.

Zhang et al. 2024, arXiv:2407.19669, section 3.1. Hugging Face's model_type is "new", and its code is on the hub.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.inference.encoder.architecture import Architecture, Arrays, HeadLayers, with_parts
from marin_assets.inference.encoder.errors import EncoderError
from marin_assets.inference.encoder.layers import activated, attend, by_heads, hiding, linear, normalised
from marin_assets.inference.encoder.model_config import ELSE, ModelConfig
from marin_assets.inference.encoder.rotary import angles, rotated

KIND = "new"
AT = "encoder.layer.{}."
LAYER = {
    "qkv": f"{AT}attention.qkv_proj",
    "attended": f"{AT}attention.o_proj",
    "attended_norm": f"{AT}attn_ln",
    "narrow": f"{AT}mlp.down_proj",
    "narrow_norm": f"{AT}mlp_ln",
}
REQUIRED = {
    "position_embedding_type": "rope",
    "layer_norm_type": "layer_norm",
    "pack_qkv": True,
    "logn_attention_scale": False,
}
"""Fields of which one value is supported: that of all published models."""


@dataclass(frozen=True, kw_only=True)
class Gte(Architecture):
    has_types: bool
    theta: float
    factor: float
    """Factor of the NTK scaling of the rotary positions; 1 without it."""

    def names(self) -> dict[str, str]:
        types = {"type": "embeddings.token_type_embeddings.weight"} if self.has_types else {}
        return {
            "word": "embeddings.word_embeddings.weight",
            **types,
            **with_parts({"norm": "embeddings.LayerNorm"}),
            **with_parts(LAYER),
            **with_parts({"wide": f"{AT}mlp.up_gate_proj"}, bias=False),
        }

    def hidden_states(self, arrays: Arrays, tokens: Any, mask: Any) -> Any:
        import jax
        import jax.numpy as jnp

        epsilon, hides = self.norm_epsilon, hiding(mask)
        angle = angles(tokens.shape[1], self.head_width, self.theta, self.factor)

        def apply(hidden: Any, layer: Arrays) -> tuple[Any, None]:
            query, key, value = (
                by_heads(part, self.heads) for part in jnp.split(linear(layer, "qkv", hidden), 3, axis=-1)
            )
            attended = attend(rotated(query, angle), rotated(key, angle), value, hides, self.head_width**0.5)
            hidden = normalised(layer, "attended_norm", hidden + linear(layer, "attended", attended), epsilon)
            inner, gate = jnp.split(linear(layer, "wide", hidden), 2, axis=-1)
            narrow = linear(layer, "narrow", activated(gate, self.activation) * inner)
            return normalised(layer, "narrow_norm", hidden + narrow, epsilon), None

        hidden = arrays["word"][tokens]
        if self.has_types:
            hidden = hidden + arrays["type"][0]
        return jax.lax.scan(apply, normalised(arrays, "norm", hidden, epsilon), self.stacks(arrays))[0]


def gte_of(config: ModelConfig) -> Gte:
    """Read the config of a GTE. Raises EncoderError for a field of REQUIRED with another value, a scaling of the rotary
    positions or an activation of another kind, or a size that lacks."""
    for key, expected in REQUIRED.items():
        config.choice(key, [expected], expected)
    return Gte(
        kind=KIND,
        prefix="new.",
        layers=config.value("num_hidden_layers"),
        heads=config.value("num_attention_heads"),
        width=config.value("hidden_size"),
        activation=config.activation("hidden_act"),
        norm_epsilon=config.value("layer_norm_eps", 1e-12),
        most_tokens=config.value("max_position_embeddings"),
        head=HeadLayers(dense="new.pooler.dense", activation="tanh", last="classifier"),
        has_types=config.value("type_vocab_size", 1) > 0,
        theta=float(config.value("rope_theta", 10_000.0)),
        factor=_factor(config),
    )


def _factor(config: ModelConfig) -> float:
    scaling = config.values.get("rope_scaling")
    if scaling is None:
        return 1.0
    if scaling.get("type") != "ntk" or scaling.get("mixed_b") is not None or not scaling.get("factor", 0) >= 1:
        raise EncoderError(
            f"{config.where!r} has rope_scaling {scaling!r:.80}, expected the type 'ntk' and a factor from 1 on. {ELSE}"
        )
    return float(scaling["factor"])

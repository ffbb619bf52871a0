"""ModernBERT: rotary positions, layers of local and of global attention, a gated linear unit, norms before each sum.

Warner et al. 2024, arXiv:2412.13663. A token of a local layer reads those at most half a window away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.inference.encoder.architecture import FIRST, MEAN, Architecture, Arrays, HeadLayers, with_parts
from marin_assets.inference.encoder.errors import EncoderError
from marin_assets.inference.encoder.layers import activated, attend, by_heads, hiding, linear, normalised
from marin_assets.inference.encoder.model_config import ELSE, ModelConfig
from marin_assets.inference.encoder.rotary import angles, rotated

KIND = "modernbert"
GLOBAL, LOCAL = "full_attention", "sliding_attention"
"""Names in a config.json of transformers 5."""
POOLINGS = {"cls": FIRST, "mean": MEAN}


@dataclass(frozen=True, kw_only=True)
class ModernBert(Architecture):
    is_global: tuple[bool, ...]
    """Whether a layer's tokens read all tokens."""
    reach: int
    """Tokens on each side that a token of a local layer reads."""
    global_theta: float
    local_theta: float
    attention_bias: bool
    mlp_bias: bool
    norm_bias: bool

    def names(self) -> dict[str, str]:
        at = "layers.{}."
        return {
            "word": "embeddings.tok_embeddings.weight",
            **with_parts({"norm": "embeddings.norm", "final_norm": "final_norm"}, bias=self.norm_bias),
            **with_parts({"attn_norm": f"{at}attn_norm", "mlp_norm": f"{at}mlp_norm"}, bias=self.norm_bias),
            **with_parts({"qkv": f"{at}attn.Wqkv", "attended": f"{at}attn.Wo"}, bias=self.attention_bias),
            **with_parts({"wide": f"{at}mlp.Wi", "narrow": f"{at}mlp.Wo"}, bias=self.mlp_bias),
        }

    def lacks(self, key: str, layer: int) -> bool:
        return layer == 0 and key.startswith("attn_norm")  # the embeddings are normalised already

    def hidden_states(self, arrays: Arrays, tokens: Any, mask: Any) -> Any:
        import jax
        import jax.numpy as jnp
        import numpy as np

        length, epsilon = tokens.shape[1], self.norm_epsilon
        global_angles = angles(length, self.head_width, self.global_theta)
        local_angles = angles(length, self.head_width, self.local_theta)
        hides = hiding(mask)
        distances = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
        hides_far = np.where(distances <= self.reach, 0.0, np.finfo(np.float32).min).astype(np.float32)
        is_global, has_norm = np.array(self.is_global), np.arange(self.layers) > 0

        def apply(hidden: Any, inputs: tuple[Arrays, Any, Any]) -> tuple[Any, None]:
            layer, reads_all, is_normalised = inputs
            before = jnp.where(is_normalised, normalised(layer, "attn_norm", hidden, epsilon), hidden)
            query, key, value = (
                by_heads(part, self.heads) for part in jnp.split(linear(layer, "qkv", before), 3, axis=-1)
            )
            angle = jnp.where(reads_all, global_angles, local_angles)
            bias = jnp.where(reads_all, hides, jnp.minimum(hides, hides_far))
            attended = attend(rotated(query, angle), rotated(key, angle), value, bias, self.head_width**0.5)
            hidden = hidden + linear(layer, "attended", attended)
            wide = linear(layer, "wide", normalised(layer, "mlp_norm", hidden, epsilon))
            inner, gate = jnp.split(wide, 2, axis=-1)
            return hidden + linear(layer, "narrow", activated(inner, self.activation) * gate), None

        hidden = normalised(arrays, "norm", arrays["word"][tokens], epsilon)
        hidden = jax.lax.scan(apply, hidden, (self.stacks(arrays), is_global, has_norm))[0]
        return normalised(arrays, "final_norm", hidden, epsilon)


def modernbert_of(config: ModelConfig) -> ModernBert:
    """Read the config of a ModernBERT, of transformers 4 or 5. Raises EncoderError for scaled rotary positions, an
    activation or a pooling of another kind, or a size that lacks."""
    layers, norm_bias = int(config.value("num_hidden_layers")), bool(config.values.get("norm_bias", False))
    pooling = config.choice("classifier_pooling", list(POOLINGS), "cls")
    head = HeadLayers(
        dense="head.dense",
        activation=config.activation("classifier_activation", more=["tanh"]),
        norm="head.norm",
        last="classifier",
        pooling=POOLINGS[pooling],
        dense_bias=bool(config.values.get("classifier_bias", False)),
        norm_bias=norm_bias,
    )
    global_theta = _theta(config, GLOBAL, config.value("global_rope_theta", 160_000.0))
    return ModernBert(
        kind=KIND,
        prefix="model.",
        layers=layers,
        heads=config.value("num_attention_heads"),
        width=config.value("hidden_size"),
        activation=config.activation("hidden_activation"),
        norm_epsilon=config.value("norm_eps", 1e-5),
        most_tokens=config.value("max_position_embeddings"),
        head=head,
        is_global=_is_global(config, layers),
        reach=config.value("local_attention", 128) // 2,
        global_theta=global_theta,
        local_theta=_theta(config, LOCAL, config.values.get("local_rope_theta", 10_000.0) or global_theta),
        attention_bias=bool(config.values.get("attention_bias", False)),
        mlp_bias=bool(config.values.get("mlp_bias", False)),
        norm_bias=norm_bias,
    )


def _is_global(config: ModelConfig, layers: int) -> tuple[bool, ...]:
    kinds = config.values.get("layer_types")
    if kinds is None:
        every = config.value("global_attn_every_n_layers", 3)
        return tuple(layer % every == 0 for layer in range(layers))
    if len(kinds) != layers or not set(kinds) <= {GLOBAL, LOCAL}:
        raise EncoderError(
            f"{config.where!r} has layer_types {kinds!r:.80}, expected {GLOBAL!r} or {LOCAL!r} for each of its "
            f"{layers} layers. {ELSE}"
        )
    return tuple(kind == GLOBAL for kind in kinds)


def _theta(config: ModelConfig, kind: str, default: float) -> float:
    parameters = {"rope_type": "default", **((config.values.get("rope_parameters") or {}).get(kind) or {})}
    scaling = config.values.get("rope_scaling") or parameters
    if (scaled := scaling.get("rope_type", scaling.get("type"))) != "default":
        raise EncoderError(f"{config.where!r} has rotary positions of type {scaled!r}, expected 'default'. {ELSE}")
    return float(parameters.get("rope_theta", default))

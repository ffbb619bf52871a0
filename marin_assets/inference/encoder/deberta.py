"""DeBERTa of versions 2 and 3: attention to the content of tokens and, apart from it, to their distances.

He et al. 2021, arXiv:2006.03654 and arXiv:2111.09543. The score of two tokens is the sum of up to three products, each
divided by the root of their number times the width of a head: query and key; query and the key of their distance
("c2p"); key and the query of their distance ("p2c").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marin_assets.inference.encoder.architecture import Architecture, Arrays, HeadLayers, with_parts
from marin_assets.inference.encoder.bert import BERT_LAYER, EMBEDDINGS
from marin_assets.inference.encoder.errors import EncoderError
from marin_assets.inference.encoder.layers import activated, attend, by_heads, hiding, linear, normalised
from marin_assets.inference.encoder.model_config import ELSE, ModelConfig

if TYPE_CHECKING:
    import numpy as np

KIND = "deberta-v2"
SELF = "encoder.layer.{}.attention.self."
LAYER = {**BERT_LAYER, "query": f"{SELF}query_proj", "key": f"{SELF}key_proj", "value": f"{SELF}value_proj"}
C2P, P2C = "c2p", "p2c"
DISTANCE_LAYER = {C2P: {"distance_key": f"{SELF}pos_key_proj"}, P2C: {"distance_query": f"{SELF}pos_query_proj"}}


@dataclass(frozen=True, kw_only=True)
class Deberta(Architecture):
    products: tuple[str, ...]
    """Those of C2P and P2C that the scores have."""
    shares_key: bool
    """Whether distances have the key and the query of tokens."""
    span: int
    """Distances on each side that have an embedding; 0 if none has."""
    buckets: int
    """As the span, if far distances share embeddings; 0 if they do not."""
    farthest: int
    """The distance from which on all share one embedding, if far distances share."""
    normalises_distances: bool
    has_positions: bool
    has_types: bool
    projects: bool
    """Whether a matrix follows the embeddings, which are of another width."""

    def names(self) -> dict[str, str]:
        absent = {"position": not self.has_positions, "type": not self.has_types}
        names = {key: name for key, name in EMBEDDINGS.items() if not absent.get(key)}
        if self.projects:
            names |= with_parts({"project": "embeddings.embed_proj"}, bias=False)
        if self.span:
            names |= {"distance": "encoder.rel_embeddings.weight"}
        if self.span and self.normalises_distances:
            names |= with_parts({"distance_norm": "encoder.LayerNorm"})
        names |= with_parts(LAYER)
        if self.span and not self.shares_key:
            for product in self.products:
                names |= with_parts(DISTANCE_LAYER[product])
        return names

    def hidden_states(self, arrays: Arrays, tokens: Any, mask: Any) -> Any:
        import jax

        length, heads, epsilon = tokens.shape[1], self.heads, self.norm_epsilon
        scale = ((1 + len(self.products)) * self.head_width) ** 0.5
        hides = hiding(mask)
        hidden = self._embedded(arrays, tokens)
        distances = self._distances(arrays, length)

        def apply(hidden: Any, layer: Arrays) -> tuple[Any, None]:
            query, key, value = (by_heads(linear(layer, name, hidden), heads) for name in ("query", "key", "value"))
            bias = hides
            if distances is not None:
                bias = bias + self._products(layer, query, key, *distances) / scale
            attended = attend(query, key, value, bias, scale)
            hidden = normalised(layer, "attended_norm", hidden + linear(layer, "attended", attended), epsilon)
            wide = activated(linear(layer, "wide", hidden), self.activation)
            return normalised(layer, "narrow_norm", hidden + linear(layer, "narrow", wide), epsilon), None

        return jax.lax.scan(apply, hidden, self.stacks(arrays))[0]

    def _embedded(self, arrays: Arrays, tokens: Any) -> Any:
        hidden = arrays["word"][tokens]
        if self.has_positions:
            hidden = hidden + arrays["position"][: tokens.shape[1]]
        if self.has_types:
            hidden = hidden + arrays["type"][0]
        if self.projects:
            hidden = linear(arrays, "project", hidden)
        return normalised(arrays, "norm", hidden, self.norm_epsilon)

    def _distances(self, arrays: Arrays, length: int) -> tuple[Any, np.ndarray] | None:
        """Return the embeddings of the distances that occur, and the place among them of each from 1 - length on."""
        import numpy as np

        if not self.span or not self.products:
            return None
        distances = np.arange(1 - length, length)
        if self.buckets:
            distances = bucket_of(distances, self.buckets, self.farthest)
        rows, places = np.unique(np.clip(distances + self.span, 0, 2 * self.span - 1), return_inverse=True)
        embeddings = arrays["distance"]
        if self.normalises_distances:
            embeddings = normalised(arrays, "distance_norm", embeddings, self.norm_epsilon)
        return embeddings[rows], places

    def _products(self, layer: Arrays, query: Any, key: Any, embeddings: Any, places: np.ndarray) -> Any:
        """Return the sum of the products with distances: (batch, head, position of the query, that of the key)."""
        import jax.numpy as jnp

        def of_distances(name: str) -> Any:
            own = name if self.shares_key else f"distance_{name}"
            return by_heads(linear(layer, own, embeddings), self.heads)[places]

        total = 0.0
        if C2P in self.products:
            total = by_distance(jnp.einsum("bqhd,rhd->bhqr", query, of_distances("key")[::-1]))
        if P2C in self.products:
            total += by_distance(jnp.einsum("bkhd,rhd->bhkr", key, of_distances("query"))).swapaxes(-1, -2)
        return total


def by_distance(products: Any) -> Any:
    """Return (…, row, column) from (…, row, column - row + rows - 1), without a gather.

    In memory, the numbers of the next row are a row without one of its numbers further (Dai et al. 2019,
    arXiv:1901.02860, appendix B).
    """
    *batch, rows, distances = products.shape
    flat = products.reshape(*batch, rows * distances)[..., rows - 1 : rows - 1 + rows * (distances - 1)]
    return flat.reshape(*batch, rows, distances - 1)[..., :rows]


def bucket_of(distances: np.ndarray, buckets: int, farthest: int) -> np.ndarray:
    """Return the buckets of distances: each distance up to half of the buckets has its own, others share wider ones.

    In float32 and in transformers' order of operations, so that no distance is rounded to another bucket.

    >>> import numpy as np
    >>> bucket_of(np.array([-200, -3, 0, 3, 5, 9, 200]), 8, 80).tolist()
    [-8, -3, 0, 3, 5, 6, 8]
    """
    import numpy as np

    half = buckets // 2
    far = np.maximum(np.abs(distances), half).astype(np.float32)
    ratio = np.log(far / np.float32(half)) / np.log(np.float32((farthest - 1) / half))
    logarithmic = np.ceil(ratio * np.float32(half - 1)) + np.float32(half)
    wide = (np.sign(distances) * logarithmic).astype(np.int64)
    return np.where(np.abs(distances) <= half, distances, wide)


def deberta_of(config: ModelConfig) -> Deberta:
    """Read the config of a DeBERTa of version 2 or 3. Raises EncoderError for a convolution, an activation of another
    kind, or a size that lacks."""
    if (convolved := config.values.get("conv_kernel_size") or 0) > 0:
        raise EncoderError(
            f"{config.where!r} has a convolution after its first layer (conv_kernel_size {convolved!r}), expected a "
            f"DeBERTa without one. {ELSE}"
        )
    width, positions = config.value("hidden_size"), config.value("max_position_embeddings", 512)
    farthest = int(config.value("max_relative_positions", -1))
    farthest = farthest if farthest >= 1 else positions
    buckets = max(int(config.value("position_buckets", -1)), 0)
    is_relative = bool(config.values.get("relative_attention", False))
    named = config.values.get("pos_att_type") or []
    named = [name.strip() for name in named.lower().split("|")] if isinstance(named, str) else named
    return Deberta(
        kind=KIND,
        prefix="deberta.",
        layers=config.value("num_hidden_layers"),
        heads=config.value("num_attention_heads"),
        width=width,
        activation=config.activation("hidden_act"),
        norm_epsilon=config.value("layer_norm_eps", 1e-7),
        most_tokens=positions,
        head=HeadLayers(
            dense="pooler.dense",
            activation=config.activation("pooler_hidden_act", more=["tanh"]),
            last="classifier",
        ),
        products=tuple(product for product in (C2P, P2C) if product in named),
        shares_key=bool(config.values.get("share_att_key", False)),
        span=(buckets or farthest) if is_relative else 0,
        buckets=buckets,
        farthest=farthest,
        normalises_distances="layer_norm" in str(config.values.get("norm_rel_ebd", "none")).lower(),
        has_positions=bool(config.values.get("position_biased_input", True)),
        has_types=config.value("type_vocab_size", 0) > 0,
        projects=config.value("embedding_size", width) != width,
    )

"""BERT and its relatives in JAX: parameters under Hugging Face's names, and the hidden states of a batch of tokens.

BERT: Devlin et al. 2019, arXiv:1810.04805. RoBERTa: Liu et al. 2019, arXiv:1907.11692. DistilBERT: Sanh et al. 2019,
arXiv:1910.01108. Transformers has them for JAX too (Flax), and removes those in its release 5.

The layers' parameters are stacked, so that XLA compiles one layer, and not each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_resources.types.errors import MarinError

Arrays = dict[str, Any]
"""The parameters: "word", "position", "type", and those of `LAYER`, whose first axis is the layer."""

EMBEDDINGS = {
    "word": "embeddings.word_embeddings.weight",
    "position": "embeddings.position_embeddings.weight",
    "type": "embeddings.token_type_embeddings.weight",
    "norm_scale": "embeddings.LayerNorm.weight",
    "norm_bias": "embeddings.LayerNorm.bias",
}
BERT_LAYER = {
    "query": "encoder.layer.{}.attention.self.query",
    "key": "encoder.layer.{}.attention.self.key",
    "value": "encoder.layer.{}.attention.self.value",
    "attended": "encoder.layer.{}.attention.output.dense",
    "attended_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "wide": "encoder.layer.{}.intermediate.dense",
    "narrow": "encoder.layer.{}.output.dense",
    "narrow_norm": "encoder.layer.{}.output.LayerNorm",
}
DISTILBERT_LAYER = {
    "query": "transformer.layer.{}.attention.q_lin",
    "key": "transformer.layer.{}.attention.k_lin",
    "value": "transformer.layer.{}.attention.v_lin",
    "attended": "transformer.layer.{}.attention.out_lin",
    "attended_norm": "transformer.layer.{}.sa_layer_norm",
    "wide": "transformer.layer.{}.ffn.lin1",
    "narrow": "transformer.layer.{}.ffn.lin2",
    "narrow_norm": "transformer.layer.{}.output_layer_norm",
}
DISTILBERT_KEYS = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "hidden_act": "activation",
}
"""Names in a config.json of DistilBERT."""
OLD_NAMES = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
"""Names in the first exports of BERT."""
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
FAMILIES = {
    "bert": ("bert.", BERT_LAYER),
    "roberta": ("roberta.", BERT_LAYER),
    "xlm-roberta": ("roberta.", BERT_LAYER),
    "camembert": ("roberta.", BERT_LAYER),
    "distilbert": ("distilbert.", DISTILBERT_LAYER),
}
"""Type of a model -> prefix of its parameters in a model with a head, names of a layer's parameters."""


class EncoderError(MarinError, ValueError):
    """The encoder cannot be loaded, or `max_tokens` is beyond what it reads."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The sizes of an encoder, from its config.json."""

    kind: str
    """Hugging Face's model_type, one of FAMILIES."""
    layers: int
    heads: int
    width: int
    activation: str
    norm_epsilon: float
    first_position: int
    """The position of the first token: RoBERTa's begin after that of the padding."""
    most_tokens: int


def architecture_of(config: Mapping[str, Any], where: str) -> Architecture:
    """Read a config.json. Raises EncoderError for a model of another family; `where` is named in the sentence."""
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise EncoderError(f"{where!r} has a model of type {kind!r}, expected an encoder: one of {sorted(FAMILIES)}.")

    def value(key: str, default: Any = None) -> Any:
        size = config.get(DISTILBERT_KEYS.get(key, key) if kind == "distilbert" else key, default)
        if size is None:
            raise EncoderError(f"config.json in {where!r} has no {key!r}, expected that of a {kind} model.")
        return size

    if (positions := config.get("position_embedding_type", "absolute")) != "absolute":
        raise EncoderError(f"{where!r} has positions of type {positions!r}, expected 'absolute'.")
    if (activation := value("hidden_act", "gelu")) not in ACTIVATIONS:
        raise EncoderError(f"{where!r} has the activation {activation!r}, expected one of {list(ACTIVATIONS)}.")
    first = int(config.get("pad_token_id", 1)) + 1 if FAMILIES[kind][0] == "roberta." else 0
    return Architecture(
        kind=kind,
        layers=value("num_hidden_layers"),
        heads=value("num_attention_heads"),
        width=value("hidden_size"),
        activation=activation,
        norm_epsilon=config.get("layer_norm_eps", 1e-12),
        first_position=first,
        most_tokens=value("max_position_embeddings") - first,
    )


def names_of(architecture: Architecture) -> dict[str, str]:
    """Our name of each parameter -> Hugging Face's without the prefix, with {} for the number of a layer."""
    _, layer = FAMILIES[architecture.kind]
    embeddings = {key: name for key, name in EMBEDDINGS.items() if key != "type" or architecture.kind != "distilbert"}
    parts = (("weight", "scale"), ("bias", "bias"))
    return embeddings | {f"{key}_{ours}": f"{name}.{part}" for key, name in layer.items() for part, ours in parts}


def gather(tensors: Mapping[str, Any], architecture: Architecture, where: str) -> Arrays:
    """Return the encoder's parameters from the tensors of a file, as float32. Raises EncoderError for one that lacks.

    Matrices are (in, out), as a batch is multiplied with them.
    """
    import numpy as np

    prefix, _ = FAMILIES[architecture.kind]
    if not any(name.startswith(prefix) for name in tensors):
        prefix = ""

    def tensor(name: str) -> Any:
        full = prefix + name
        for suffix, old in OLD_NAMES.items():
            if full not in tensors and full.endswith(suffix):
                full = full.removesuffix(suffix) + old
        if full not in tensors:
            raise EncoderError(f"The weights in {where!r} have no {prefix + name!r}. Download or save the model again.")
        return np.asarray(tensors[full], np.float32)

    arrays: Arrays = {}
    for key, name in names_of(architecture).items():
        if "{}" not in name:
            arrays[key] = tensor(name)
            continue
        stacked = np.stack([tensor(name.format(layer)) for layer in range(architecture.layers)])
        arrays[key] = stacked.swapaxes(1, 2) if stacked.ndim == 3 else stacked
    return arrays


def scatter(arrays: Arrays, architecture: Architecture) -> dict[str, Any]:
    """Return the parameters as the tensors of a file, without a prefix: the opposite of `gather`."""
    import numpy as np

    tensors = {}
    for key, name in names_of(architecture).items():
        array = np.asarray(arrays[key])
        if "{}" not in name:
            tensors[name] = array
            continue
        for layer in range(architecture.layers):
            tensors[name.format(layer)] = np.ascontiguousarray(array[layer].T)
    return tensors


def hidden_states(arrays: Arrays, tokens: Any, mask: Any, architecture: Architecture) -> Any:
    """Return the last hidden states, (batch, position, width), of tokens (batch, position).

    `mask` is 1 for a token and 0 for padding, which is on the right. The states of a row depend on its tokens and on
    the two sizes of the batch, and on no other row.
    """
    import jax
    import jax.numpy as jnp

    batch, length = tokens.shape
    heads, head_width = architecture.heads, architecture.width // architecture.heads
    first = architecture.first_position
    hidden = arrays["word"][tokens] + arrays["position"][first : first + length]
    if "type" in arrays:
        hidden = hidden + arrays["type"][0]
    hidden = _normalised(hidden, arrays["norm_scale"], arrays["norm_bias"], architecture.norm_epsilon)
    hides = jnp.where(mask[:, None, None, :] > 0, 0.0, jnp.finfo(jnp.float32).min)
    layers = {key: array for key, array in arrays.items() if key not in EMBEDDINGS}

    def linear(layer: Arrays, name: str, x: Any) -> Any:
        return x @ layer[f"{name}_scale"] + layer[f"{name}_bias"]

    def normalised(layer: Arrays, name: str, x: Any) -> Any:
        return _normalised(x, layer[f"{name}_scale"], layer[f"{name}_bias"], architecture.norm_epsilon)

    def apply(hidden: Any, layer: Arrays) -> tuple[Any, None]:
        query, key, value = (
            linear(layer, name, hidden).reshape(batch, length, heads, head_width) for name in ("query", "key", "value")
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / head_width**0.5 + hides
        attended = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value).reshape(hidden.shape)
        hidden = normalised(layer, "attended_norm", hidden + linear(layer, "attended", attended))
        wide = _activated(linear(layer, "wide", hidden), architecture.activation)
        return normalised(layer, "narrow_norm", hidden + linear(layer, "narrow", wide)), None

    return jax.lax.scan(apply, hidden, layers)[0]


def _normalised(x: Any, scale: Any, bias: Any, epsilon: float) -> Any:
    import jax
    import jax.numpy as jnp

    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + epsilon) * scale + bias


def _activated(x: Any, activation: str) -> Any:
    import jax

    return jax.nn.relu(x) if activation == "relu" else jax.nn.gelu(x, approximate=activation != "gelu")

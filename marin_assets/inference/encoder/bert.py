"""BERT and its relatives: learned positions, attention, a layer with an activation, each normalised after its sum.

BERT: Devlin et al. 2019, arXiv:1810.04805. RoBERTa: Liu et al. 2019, arXiv:1907.11692. DistilBERT: Sanh et al. 2019,
arXiv:1910.01108. ELECTRA: Clark et al. 2020, arXiv:2003.10555. Transformers has them for JAX too (Flax), and removes
those in its release 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.inference.encoder.architecture import Architecture, Arrays, HeadLayers, with_parts
from marin_assets.inference.encoder.layers import activated, attend, by_heads, hiding, linear, normalised
from marin_assets.inference.encoder.model_config import ModelConfig

EMBEDDINGS = {
    "word": "embeddings.word_embeddings.weight",
    "position": "embeddings.position_embeddings.weight",
    "type": "embeddings.token_type_embeddings.weight",
    **with_parts({"norm": "embeddings.LayerNorm"}),
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
ROBERTA_HEAD = HeadLayers(dense="classifier.dense", activation="tanh", last="classifier.out_proj")
FAMILIES = {
    "bert": ("bert.", HeadLayers(dense="bert.pooler.dense", activation="tanh", last="classifier")),
    "roberta": ("roberta.", ROBERTA_HEAD),
    "xlm-roberta": ("roberta.", ROBERTA_HEAD),
    "camembert": ("roberta.", ROBERTA_HEAD),
    "distilbert": ("distilbert.", HeadLayers(dense="pre_classifier", activation="relu", last="classifier")),
    "electra": ("electra.", HeadLayers(dense="classifier.dense", activation="gelu", last="classifier.out_proj")),
}
"""Type of a model -> prefix of its parameters in a model with a head, that head."""


@dataclass(frozen=True, kw_only=True)
class Bert(Architecture):
    first_position: int
    """The position of the first token: RoBERTa's begin after that of the padding."""
    projects: bool
    """Whether a linear layer follows the embeddings, which are of another width: ELECTRA's."""

    def names(self) -> dict[str, str]:
        distilled = self.kind == "distilbert"
        embeddings = {key: name for key, name in EMBEDDINGS.items() if key != "type" or not distilled}
        if self.projects:
            embeddings |= with_parts({"project": "embeddings_project"})
        return embeddings | with_parts(DISTILBERT_LAYER if distilled else BERT_LAYER)

    def hidden_states(self, arrays: Arrays, tokens: Any, mask: Any) -> Any:
        import jax

        first, heads, epsilon = self.first_position, self.heads, self.norm_epsilon
        hidden = arrays["word"][tokens] + arrays["position"][first : first + tokens.shape[1]]
        if "type" in arrays:
            hidden = hidden + arrays["type"][0]
        hidden = normalised(arrays, "norm", hidden, epsilon)
        if self.projects:
            hidden = linear(arrays, "project", hidden)
        hides = hiding(mask)

        def apply(hidden: Any, layer: Arrays) -> tuple[Any, None]:
            query, key, value = (by_heads(linear(layer, name, hidden), heads) for name in ("query", "key", "value"))
            attended = attend(query, key, value, hides, self.head_width**0.5)
            hidden = normalised(layer, "attended_norm", hidden + linear(layer, "attended", attended), epsilon)
            wide = activated(linear(layer, "wide", hidden), self.activation)
            return normalised(layer, "narrow_norm", hidden + linear(layer, "narrow", wide), epsilon), None

        return jax.lax.scan(apply, hidden, self.stacks(arrays))[0]


def bert_of(config: ModelConfig) -> Bert:
    """Read the config of a model of FAMILIES. Raises EncoderError for relative positions, an activation of another kind
    or a size that lacks."""
    prefix, head = FAMILIES[config.kind]
    keys = DISTILBERT_KEYS if config.kind == "distilbert" else {}

    def size(key: str) -> int:
        return int(config.value(keys.get(key, key)))

    config.choice("position_embedding_type", ["absolute"], "absolute", "positions of type")
    activation = config.activation(keys.get("hidden_act", "hidden_act"))
    first = int(config.values.get("pad_token_id", 1)) + 1 if prefix == "roberta." else 0
    width = size("hidden_size")
    return Bert(
        kind=config.kind,
        prefix=prefix,
        layers=size("num_hidden_layers"),
        heads=size("num_attention_heads"),
        width=width,
        activation=activation,
        norm_epsilon=config.values.get("layer_norm_eps", 1e-12),
        most_tokens=size("max_position_embeddings") - first,
        head=head,
        first_position=first,
        projects=config.kind == "electra" and config.value("embedding_size", 128) != width,
    )

"""Tiny sequence classifiers of several families, with the same weights wherever they are made. Without torch.

The names and shapes of their weights are those of transformers, from encoder_outputs.json.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tiny_encoders import VOCABULARY, make_tokenizer

COMMON = {
    "vocab_size": VOCABULARY + 1,
    "hidden_size": 36,
    "intermediate_size": 50,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 80,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "cls_token_id": 2,
    "sep_token_id": 3,
    "pad_token_id": 0,
}
LABELS = {"id2label": {"0": "good", "1": "bad", "2": "unclear"}, "label2id": {"good": 0, "bad": 1, "unclear": 2}}
NUMBER = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
FAMILIES: dict[str, dict[str, Any]] = {
    "modernbert": {
        "model_type": "modernbert",
        "num_hidden_layers": 5,
        "local_attention": 16,
        "global_rope_theta": 160000.0,
        "local_rope_theta": 10000.0,
        **LABELS,
    },
    "modernbert_mean": {
        "model_type": "modernbert",
        "num_hidden_layers": 4,
        "global_attn_every_n_layers": 2,
        "local_attention": 13,
        "global_rope_theta": 5000.0,
        "local_rope_theta": 300.0,
        "attention_bias": True,
        "mlp_bias": True,
        "norm_bias": True,
        "classifier_bias": True,
        "classifier_pooling": "mean",
        "classifier_activation": "tanh",
        "hidden_activation": "gelu_pytorch_tanh",
        **NUMBER,
    },
    "deberta_v3": {
        "model_type": "deberta-v2",
        "relative_attention": True,
        "position_buckets": 8,
        "max_relative_positions": -1,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": "p2c|c2p",
        "position_biased_input": False,
        "type_vocab_size": 0,
        "pooler_hidden_act": "gelu",
        "pooler_hidden_size": 36,
        **LABELS,
    },
    "deberta_v2": {
        "model_type": "deberta-v2",
        "relative_attention": True,
        "max_relative_positions": 20,
        "share_att_key": False,
        "pos_att_type": ["c2p", "p2c"],
        "position_biased_input": True,
        "type_vocab_size": 2,
        "embedding_size": 28,
        "pooler_hidden_act": "tanh",
        "pooler_hidden_size": 36,
        "layer_norm_eps": 1e-5,
        **LABELS,
    },
    "deberta_p2c": {
        "model_type": "deberta-v2",
        "relative_attention": True,
        "position_buckets": 12,
        "max_relative_positions": 40,
        "share_att_key": False,
        "pos_att_type": "p2c",
        "type_vocab_size": 0,
        "pooler_hidden_size": 36,
        **NUMBER,
    },
    "deberta_absolute": {"model_type": "deberta-v2", "type_vocab_size": 0, "pooler_hidden_size": 36, **LABELS},
    "electra": {"model_type": "electra", "embedding_size": 20, "type_vocab_size": 2, **LABELS},
    "electra_one_width": {"model_type": "electra", "embedding_size": 36, "hidden_act": "relu", **NUMBER},
}
"""Name -> fields of the config beyond COMMON."""
LENGTHS = (61, 40, 9, 3)
"""Tokens of the rows of TOKENS; padding follows."""
MASK = [[int(place < length) for place in range(max(LENGTHS))] for length in LENGTHS]
TOKENS = [
    [(7 * i * i + 3 * i + 11 * row) % VOCABULARY * is_token for i, is_token in enumerate(mask)]
    for row, mask in enumerate(MASK)
]


def config_of(name: str) -> dict[str, Any]:
    return {**COMMON, **FAMILIES[name]}


def weights_of(shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """Every weight drawn from a seed that its name gives; scales of norms around 1."""
    weights = {}
    for name, shape in shapes.items():
        drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape) * 0.2
        is_scale = name.endswith(("norm.weight", "Norm.weight", "_ln.weight"))
        weights[name] = (drawn + (1.0 if is_scale else 0.0)).astype(np.float32)
    return weights


def write_family(
    folder: Path, config: dict[str, Any], shapes: dict[str, list[int]], texts: list[str] | None = None
) -> str:
    """Write the folder of a sequence classifier, whose tokenizer is trained on the texts. Returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights_of(shapes), folder / "model.safetensors", metadata={"format": "pt"})
    make_tokenizer(texts or ["A text."]).save(str(folder / "tokenizer.json"))
    return str(folder)

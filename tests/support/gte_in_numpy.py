"""GTE (gte-base-en-v1.5) in numpy and float64, token by token: a reference beside the one in JAX.

Written from the paper (Zhang et al. 2024, arXiv:2407.19669) and from the behaviour of the code on the hub. Each text is
computed alone, without padding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

CONFIG: dict[str, Any] = {
    "model_type": "new",
    "vocab_size": 401,
    "hidden_size": 36,
    "intermediate_size": 50,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 80,
    "hidden_act": "gelu",
    "layer_norm_type": "layer_norm",
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "rope",
    "rope_theta": 5000.0,
    "rope_scaling": {"type": "ntk", "factor": 2.0},
    "type_vocab_size": 0,
    "pack_qkv": True,
    "logn_attention_scale": False,
    "pad_token_id": 0,
    "id2label": {"0": "good", "1": "bad", "2": "unclear"},
}


def shapes_of(config: dict[str, Any]) -> dict[str, list[int]]:
    """Names and shapes of the weights of a classifier, as the hub's code writes them."""
    width, wide, labels = config["hidden_size"], config["intermediate_size"], len(config["id2label"])
    shapes = {
        "new.embeddings.word_embeddings.weight": [config["vocab_size"], width],
        "new.embeddings.LayerNorm.weight": [width],
        "new.embeddings.LayerNorm.bias": [width],
        "new.pooler.dense.weight": [width, width],
        "new.pooler.dense.bias": [width],
        "classifier.weight": [labels, width],
        "classifier.bias": [labels],
    }
    if config["type_vocab_size"]:
        shapes["new.embeddings.token_type_embeddings.weight"] = [config["type_vocab_size"], width]
    for layer in range(config["num_hidden_layers"]):
        at = f"new.encoder.layer.{layer}"
        shapes |= {
            f"{at}.attention.qkv_proj.weight": [3 * width, width],
            f"{at}.attention.qkv_proj.bias": [3 * width],
            f"{at}.attention.o_proj.weight": [width, width],
            f"{at}.attention.o_proj.bias": [width],
            f"{at}.mlp.up_gate_proj.weight": [2 * wide, width],
            f"{at}.mlp.down_proj.weight": [width, wide],
            f"{at}.mlp.down_proj.bias": [width],
            f"{at}.attn_ln.weight": [width],
            f"{at}.attn_ln.bias": [width],
            f"{at}.mlp_ln.weight": [width],
            f"{at}.mlp_ln.bias": [width],
        }
    return shapes


def hidden_and_scores(weights: dict[str, np.ndarray], tokens: list[int], config: dict[str, Any]) -> tuple[Any, Any]:
    """The last hidden states of one text, and the probabilities of its labels."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    heads, width = config["num_attention_heads"], config["hidden_size"]
    size = width // heads

    def norm(name: str, row: Any) -> Any:
        spread = math.sqrt(((row - row.mean()) ** 2).mean() + config["layer_norm_eps"])
        return (row - row.mean()) / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    def turn(head: Any, place: int) -> Any:
        """The pairs (i, i + size / 2) of a head as complex numbers, each turned by its angle."""
        factor = (config["rope_scaling"] or {"factor": 1.0})["factor"]
        turned = head.copy()
        for i in range(size // 2):
            frequency = (config["rope_theta"] * factor) ** (-2 * i / size) / factor ** (2 / size)
            number = complex(head[i], head[i + size // 2]) * np.exp(1j * place * frequency)
            turned[i], turned[i + size // 2] = number.real, number.imag
        return turned

    states = [w["new.embeddings.word_embeddings.weight"][token] for token in tokens]
    if config["type_vocab_size"]:
        states = [state + w["new.embeddings.token_type_embeddings.weight"][0] for state in states]
    states = [norm("new.embeddings.LayerNorm", state) for state in states]
    for layer in range(config["num_hidden_layers"]):
        at = f"new.encoder.layer.{layer}"
        qkv = [w[f"{at}.attention.qkv_proj.weight"] @ s + w[f"{at}.attention.qkv_proj.bias"] for s in states]
        sums = [np.zeros(width) for _ in states]
        for h in range(heads):
            of = slice(h * size, (h + 1) * size)
            queries = [turn(row[:width][of], place) for place, row in enumerate(qkv)]
            keys = [turn(row[width : 2 * width][of], place) for place, row in enumerate(qkv)]
            values = [row[2 * width :][of] for row in qkv]
            for place, query in enumerate(queries):
                shares = np.exp([query @ key / math.sqrt(size) for key in keys])
                sums[place][of] = sum(s * v for s, v in zip(shares / shares.sum(), values, strict=True))
        outputs = [w[f"{at}.attention.o_proj.weight"] @ row + w[f"{at}.attention.o_proj.bias"] for row in sums]
        states = [norm(f"{at}.attn_ln", s + o) for s, o in zip(states, outputs, strict=True)]
        up_gate = [np.split(w[f"{at}.mlp.up_gate_proj.weight"] @ s, 2) for s in states]
        gated = [np.array([x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in gate]) * up for up, gate in up_gate]
        down = [w[f"{at}.mlp.down_proj.weight"] @ row + w[f"{at}.mlp.down_proj.bias"] for row in gated]
        states = [norm(f"{at}.mlp_ln", s + d) for s, d in zip(states, down, strict=True)]
    pooled = np.tanh(w["new.pooler.dense.weight"] @ states[0] + w["new.pooler.dense.bias"])
    shares = np.exp(w["classifier.weight"] @ pooled + w["classifier.bias"])
    return np.array(states), shares / shares.sum()

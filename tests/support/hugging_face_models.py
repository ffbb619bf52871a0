"""A tiny model of each family as a Hugging Face folder, with the same weights wherever it is made. Without torch."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

TOKENS = [[(7 * i * i + 3 * i + row) % 64 for i in range(24)] for row in range(2)]
COMMON = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 32,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", {"model_type": "llama"}),
    "llama_tied_rope3": (
        "LlamaForCausalLM",
        {"model_type": "llama", "tie_word_embeddings": True, "rope_theta": 500000.0, "rope_scaling": LLAMA3},
    ),
    "mistral": ("MistralForCausalLM", {"model_type": "mistral", "sliding_window": None}),
    "qwen2": ("Qwen2ForCausalLM", {"model_type": "qwen2"}),
    "qwen3": ("Qwen3ForCausalLM", {"model_type": "qwen3", "head_dim": 48}),
    "olmo2": ("Olmo2ForCausalLM", {"model_type": "olmo2"}),
    "olmo3": ("Olmo3ForCausalLM", {"model_type": "olmo3", "sliding_window": 8, "num_hidden_layers": 4}),
    "mixtral": (
        "MixtralForCausalLM",
        {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None},
    ),
    "qwen3_moe": (
        "Qwen3MoeForCausalLM",
        {
            "model_type": "qwen3_moe",
            "head_dim": 32,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 48,
            "norm_topk_prob": True,
        },
    ),
}
"""Name -> class of transformers, and the fields beyond COMMON."""


def config_of(name: str) -> dict[str, Any]:
    architecture, fields = FAMILIES[name]
    return {**COMMON, **fields, "architectures": [architecture]}


def weights_of(shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """Every weight drawn from a seed that its name gives; norms around 1, so that none is without effect."""
    weights = {}
    for name, shape in shapes.items():
        drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape) * 0.1
        weights[name] = (drawn + (1.0 if "norm" in name else 0.0)).astype(np.float32)
    return weights


def write_folder(folder: Path, name: str, shapes: dict[str, list[int]]) -> Path:
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config_of(name)))
    save_file(weights_of(shapes), str(folder / "model.safetensors"), metadata={"format": "pt"})
    return folder

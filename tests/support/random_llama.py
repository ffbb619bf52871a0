"""A small Llama with random weights in a Hugging Face export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LAYERS, MLP = 2, 96


def write_random_llama(
    folder: Path, texts: list[str], window: int, *, head_dim: int = 16, vocab_size: int = 512
) -> str:
    """Write a model of two layers whose predictions differ, with a tokenizer of these texts. Returns the folder."""
    return write_llama(folder, write_tokenizer(folder, texts, vocab_size), window, head_dim)


def write_llama(folder: Path, vocab_size: int, window: int, head_dim: int) -> str:
    """Write the model to a folder with its tokenizer, without JAX, whose import and compilation take 8 s. Returns the
    folder."""
    from safetensors.numpy import save_file

    width, heads, kv_heads = 2 * head_dim, 2, 1
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": vocab_size,
        "max_position_embeddings": window,
        "hidden_size": width,
        "intermediate_size": MLP,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-05,
        "rope_theta": 10000,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
    }
    (folder / "config.json").write_text(json.dumps(config))
    save_file(_weights(vocab_size, width, head_dim, kv_heads), folder / "model.safetensors", {"format": "pt"})
    return str(folder)


def _weights(vocab_size: int, width: int, head_dim: int, kv_heads: int) -> dict[str, Any]:
    import numpy as np

    random = np.random.default_rng(0)
    shapes = {
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (kv_heads * head_dim, width),
        "self_attn.v_proj": (kv_heads * head_dim, width),
        "self_attn.o_proj": (width, width),
        "mlp.gate_proj": (MLP, width),
        "mlp.up_proj": (MLP, width),
        "mlp.down_proj": (width, MLP),
    }
    layers = [f"model.layers.{number}" for number in range(LAYERS)]
    matrices = {f"{layer}.{name}": shape for layer in layers for name, shape in shapes.items()}
    norms = ["model.norm", *(f"{layer}.{at}_layernorm" for layer in layers for at in ("input", "post_attention"))]
    weights = {
        "model.embed_tokens": random.normal(0, 1 / width, (vocab_size, width)),
        **{name: random.normal(0, shape[1] ** -0.5, shape) for name, shape in matrices.items()},
        **{name: np.ones(width) for name in norms},
    }
    return {f"{name}.weight": value.astype(np.float32) for name, value in weights.items()}


def write_tokenizer(folder: Path, texts: list[str], vocab_size: int = 512) -> int:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = {"bos_token": "<|bos|>", "eos_token": "<|eos|>", "pad_token": "<|pad|>"}
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(special.values()), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 1_000_000, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return tokenizer.get_vocab_size()

"""A small Llama with random weights in a Hugging Face export."""

from __future__ import annotations

import json
from pathlib import Path


def write_random_llama(folder: Path, texts: list[str], window: int, *, head_dim: int = 16) -> str:
    """Write a model of two layers whose predictions differ, with a tokenizer of these texts. Returns the folder."""
    return write_llama(folder, write_tokenizer(folder, texts), window, head_dim)


def write_llama(folder: Path, vocab_size: int, window: int, head_dim: int) -> str:
    """Write the model to a folder with its tokenizer. Returns the folder."""
    import haliax as hax
    import jax
    from levanter.models.llama import LlamaConfig
    from levanter.tokenizers import load_tokenizer
    from levanter.utils.jax_utils import local_cpu_mesh

    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    config = LlamaConfig(
        max_seq_len=window,
        hidden_dim=2 * head_dim,
        intermediate_dim=96,
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        initializer_range=0.3,
        gradient_checkpointing=False,
        tie_word_embeddings=True,
        reference_checkpoint=str(folder),
        tokenizer=str(folder),
    )
    with local_cpu_mesh():
        model = hax.named_jit(config.build)(hax.Axis("vocab", vocab_size), key=jax.random.PRNGKey(0))
        converter = config.hf_checkpoint_converter().replaced(tokenizer=load_tokenizer(str(folder)))
        converter.save_pretrained(model, str(folder), save_reference_code=False)
    return str(folder)


def write_tokenizer(folder: Path, texts: list[str]) -> int:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = {"bos_token": "<|bos|>", "eos_token": "<|eos|>", "pad_token": "<|pad|>"}
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=512, special_tokens=list(special.values()), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 1_000_000, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return tokenizer.get_vocab_size()

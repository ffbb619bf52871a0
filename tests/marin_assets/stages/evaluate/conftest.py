"""A small corpus, and a small Llama with random weights in a Hugging Face export."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from marin_assets.documents import Document, shard_name, write_documents

WINDOW = 64


@pytest.fixture(scope="session")
def corpus() -> list[Document]:
    """The topics of Python's help, in chunks of at least 600 characters."""
    from pydoc_data.topics import topics

    return [
        Document(id=f"{page}#{index}", text=chunk, source="pydoc", metadata={"page": page})
        for page, text in sorted(topics.items())
        for index, chunk in enumerate(re.findall(r"(?s).{600,}?(?:\n\n|\Z)", text))
    ]


@pytest.fixture(scope="session")
def documents_path(corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("documents")
    for index in range(3):
        write_documents(str(path / shard_name(index, 3)), corpus[index::3])
    return str(path)


@pytest.fixture(scope="session")
def model_path(corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two layers, hidden size 32, window of 64 tokens, weights large enough that predictions differ."""
    import haliax as hax
    import jax
    from levanter.models.llama import LlamaConfig
    from levanter.tokenizers import load_tokenizer
    from levanter.utils.jax_utils import local_cpu_mesh

    folder = tmp_path_factory.mktemp("hf")
    vocab_size = write_tokenizer(folder, [document.text for document in corpus[:200]])
    config = LlamaConfig(
        max_seq_len=WINDOW,
        hidden_dim=32,
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
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    return tokenizer.get_vocab_size()

"""Encoders of two layers with random weights, written as Hugging Face writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

WIDTH, WIDE, HEADS, LAYERS, VOCABULARY, POSITIONS = 32, 64, 4, 2, 400, 80
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def write_encoder(
    folder: Path,
    texts: list[str],
    *,
    kind: str = "bert",
    labels: tuple[str, ...] = (),
    seed: int = 0,
    bare: bool = False,
    **config: Any,
) -> str:
    """Write an encoder whose tokenizer is trained on the texts, with the head of a sequence classifier if it has
    labels. `bare`: without the prefix of its parameters' names, as a model without a head is written. Returns the
    folder."""
    folder.mkdir(parents=True, exist_ok=True)
    positions = config.get("max_position_embeddings", POSITIONS)
    random = np.random.default_rng(seed)
    tensors: dict[str, np.ndarray] = {}

    def add(name: str, *shape: int, mean: float = 0.0) -> None:
        tensors[name] = (mean + 0.2 * random.standard_normal(shape)).astype(np.float32)

    def linear(name: str, out: int, into: int) -> None:
        add(f"{name}.weight", out, into)
        add(f"{name}.bias", out)

    def norm(name: str) -> None:
        add(f"{name}.weight", WIDTH, mean=1.0)
        add(f"{name}.bias", WIDTH)

    distilled, prefix = kind == "distilbert", "roberta" if "roberta" in kind else kind
    before = "" if bare else f"{prefix}."
    add(f"{before}embeddings.word_embeddings.weight", VOCABULARY, WIDTH)
    add(f"{before}embeddings.position_embeddings.weight", positions, WIDTH)
    if not distilled:
        add(f"{before}embeddings.token_type_embeddings.weight", 2 if kind == "bert" else 1, WIDTH)
    norm(f"{before}embeddings.LayerNorm")
    for layer in range(LAYERS):
        if distilled:
            at = f"{before}transformer.layer.{layer}"
            for name in ("q_lin", "k_lin", "v_lin", "out_lin"):
                linear(f"{at}.attention.{name}", WIDTH, WIDTH)
            norm(f"{at}.sa_layer_norm")
            linear(f"{at}.ffn.lin1", WIDE, WIDTH)
            linear(f"{at}.ffn.lin2", WIDTH, WIDE)
            norm(f"{at}.output_layer_norm")
            continue
        at = f"{before}encoder.layer.{layer}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{at}.attention.{name}", WIDTH, WIDTH)
        norm(f"{at}.attention.output.LayerNorm")
        linear(f"{at}.intermediate.dense", WIDE, WIDTH)
        linear(f"{at}.output.dense", WIDTH, WIDE)
        norm(f"{at}.output.LayerNorm")
    if labels:
        first, last = {
            "bert": ("bert.pooler.dense", "classifier"),
            "roberta": ("classifier.dense", "classifier.out_proj"),
            "distilbert": ("pre_classifier", "classifier"),
        }[prefix]
        linear(first, WIDTH, WIDTH)
        linear(last, len(labels), WIDTH)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_act": "gelu"}
    sizes |= {"intermediate_size": WIDE, "type_vocab_size": 2 if kind == "bert" else 1}
    if distilled:
        sizes = {"dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "activation": "gelu", "hidden_dim": WIDE}
    named = {"id2label": dict(enumerate(labels)), "label2id": {name: i for i, name in enumerate(labels)}}
    about = {"model_type": kind, "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS, **sizes}
    about |= {"pad_token_id": 1 if prefix == "roberta" else 0, **(named if labels else {}), **config}
    (folder / "config.json").write_text(json.dumps(about))
    make_tokenizer(texts).save(str(folder / "tokenizer.json"))
    return str(folder)


def make_tokenizer(texts: list[str]) -> Tokenizer:
    """A tokenizer of at most VOCABULARY tokens, trained on the texts."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer

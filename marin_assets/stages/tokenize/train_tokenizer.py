"""Train a tokenizer: byte-level BPE with the special tokens <|bos|>, <|eos|> and <|pad|>.

In:  documents, of which it uses the train side of the split (`documents/position.py`).
Out: a tokenizer folder in Hugging Face's format, at the output path:
     tokenizer.json         the tokenizer; it prepends <|bos|>, as Llama's does
     tokenizer_config.json  names of the special tokens
     config.json            the model family, so that exporting a model with this tokenizer needs no hub

Every byte is a token, so text -> tokens -> text loses nothing. The stage checks that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from marin_assets.documents import document_files, read_documents
from marin_assets.documents.caches.tokens import read_tokenizer
from marin_assets.documents.position import TRAIN, check_fraction, split_of
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.input_changes import require_unchanged
from marin_resources.storage.files import write_bytes, write_json
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("huggingface",)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BOS, EOS, PAD = "<|bos|>", "<|eos|>", "<|pad|>"
BYTES = 256
BATCH = 512

HARD_TEXTS = (
    "",
    " ",
    "\n\n\r\n\r\t \t",
    "tabs\tand  two spaces,   three; trailing   ",
    "\x00\x01\x7f NUL, control and DEL",
    "zero\u200bwidth\u200djoiner\ufeffmark",
    "e\u0301 and \u00e9 are not the same; \u212b \ufb01 \u2126",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u05e2\u05d1\u05e8\u05d9\u05ea \u202e\u65e5\u672c\u8a9e ",
    "\ud55c\uad6d\uc5b4",
    "\U0010ffff\ufffe\ufffd\U000e0001",
    f"{BOS}special tokens written in a text{EOS}{PAD}",
    "\u0120\u010a looks like the byte alphabet",
)
"""Texts that some tokenizers change. All are valid Unicode, so none has lone surrogates."""

log = logging.getLogger(__name__)


class TokenizerError(MarinError, ValueError):
    """The tokenizer cannot be trained with this config."""


@dataclass(frozen=True, kw_only=True)
class TrainTokenizerConfig:
    documents_path: str
    """Documents to train on."""
    output_path: str = THIS_OUTPUT_PATH
    vocab_size: int = versioned(4096)
    """Number of tokens, including the special tokens and the 256 bytes."""
    validation_fraction: float = versioned(0.05)
    """The share of pages that are not trained on. Use the same fraction in the tokenized steps."""
    roundtrip_documents: int = 10_000
    """Number of documents to check text -> tokens -> text on, evenly spaced; at most all of them."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def train_tokenizer(config: TrainTokenizerConfig) -> dict[str, Any]:
    """Train a byte-level BPE tokenizer on the train side, write its folder, and read it back to check it.

    Returns vocab_size, documents and bytes trained on, roundtrip_documents, roundtrip_failures, and bytes_per_token
    (of the checked documents). Raises TokenizerError if the text is too short to fill the vocabulary,
    InputChangedError if the documents change meanwhile.
    """
    _check(config)
    started = time.monotonic()
    files = document_files(config.documents_path)
    shards = [file.path for file in files.shards]
    seen = {"documents": 0, "bytes": 0}
    tokenizer = _train(_train_texts(shards, config.validation_fraction, seen), config.vocab_size)
    if tokenizer.get_vocab_size() != config.vocab_size:
        raise TokenizerError(
            f"{config.documents_path!r} has text ({seen['bytes']:,} bytes) for {tokenizer.get_vocab_size()} tokens, "
            f"expected vocab_size={config.vocab_size}. Lower vocab_size, or pass more text."
        )
    log.info("trained %d tokens on %s in %.1f s", config.vocab_size, seen, time.monotonic() - started)
    _write_folder(tokenizer, config.output_path)
    written = read_tokenizer(config.output_path, special_tokens=True)
    checked = _check_roundtrip(written, shards, config.roundtrip_documents)
    require_unchanged(files.shards)
    return {"vocab_size": written.get_vocab_size(), **seen, **checked, **files.counts}


def _check(config: TrainTokenizerConfig) -> None:
    check_fraction(config.validation_fraction)
    if config.vocab_size < BYTES + 3:
        raise TokenizerError(
            f"vocab_size is {config.vocab_size!r}, expected at least {BYTES + 3}: {BYTES} bytes and 3 special tokens."
        )


def _train_texts(shards: list[str], validation_fraction: float, seen: dict[str, int]) -> Iterator[str]:
    for shard in shards:
        for document in read_documents(shard):
            if split_of(document, validation_fraction) == TRAIN:
                seen["documents"] += 1
                seen["bytes"] += len(document.text.encode())
                yield document.text


def _train(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE(unk_token=None))
    # No normalizer: it would change texts, and Levanter would split long documents.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[BOS, EOS, PAD],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, tokenizer.token_to_id(BOS))]
    )
    return tokenizer


def _write_folder(tokenizer: Tokenizer, path: str) -> None:
    write_bytes(join(path, "tokenizer.json"), tokenizer.to_str(pretty=True).encode())
    write_json(
        join(path, "tokenizer_config.json"),
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": BOS,
            "eos_token": EOS,
            "pad_token": PAD,
            "model_max_length": 1_000_000,
            "model_input_names": ["input_ids", "attention_mask"],
            "clean_up_tokenization_spaces": False,
        },
    )
    write_json(join(path, "config.json"), {"model_type": "llama", "architectures": ["LlamaForCausalLM"]})


def _check_roundtrip(tokenizer: Tokenizer, shards: list[str], limit: int) -> dict[str, int | float]:
    total = sum(1 for shard in shards for _ in read_documents(shard))
    texts = (document.text for shard in shards for document in read_documents(shard))
    sample = islice(texts, 0, None, max(1, -(-total // max(1, limit))))
    documents = failures = size = tokens = 0
    while batch := list(islice(sample, BATCH)):
        ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False)]
        documents += len(batch)
        size += sum(len(text.encode()) for text in batch)
        tokens += sum(map(len, ids))
        failures += _count_changed(tokenizer, batch, ids)
    hard = [tokenizer.encode(text, add_special_tokens=False).ids for text in HARD_TEXTS]
    failures += _count_changed(tokenizer, list(HARD_TEXTS), hard)
    return {
        "roundtrip_documents": documents,
        "roundtrip_failures": failures,
        "bytes_per_token": size / max(1, tokens),
    }


def _count_changed(tokenizer: Tokenizer, texts: list[str], ids: list[list[int]]) -> int:
    return sum(a != b for a, b in zip(texts, tokenizer.decode_batch(ids, skip_special_tokens=False), strict=True))

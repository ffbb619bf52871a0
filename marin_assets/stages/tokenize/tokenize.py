"""Tokenize documents into Levanter's token caches.

In:  documents, and a tokenizer folder (tokenizer.json, tokenizer_config.json).
Out: `<output>/train/…` and `<output>/validation/…`, Levanter caches (`cache.py`), one shard for each shard of
     documents; every document is [bos, *tokens, eos], without bos if the tokenizer has none, as in Levanter. The bytes
     depend only on the documents and the tokenizer.

The next attempt does not tokenize finished shards again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from marin_assets.documents import Document, document_files, page_of, read_documents
from marin_assets.documents.caches.token_cache import LEDGER
from marin_assets.documents.caches.tokens import read_tokenizer
from marin_assets.documents.position import SPLITS, TRAIN, VALIDATION, check_fraction, split_of
from marin_assets.stages.tokenize.cache import Names, read_documents_of, read_names, write_shard, write_split
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import folder_state
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import StoredFile, exists, read_bytes, read_json
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("levanter",)

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

BATCH = 1024
"""Documents that are encoded together, on all cores of the process."""
CHECKED_FIRST, CHECKED_EVERY = 8, 200
"""The first 8 documents and one in 200 of each shard and split are read back and compared: 1 % of the work."""

log = logging.getLogger(__name__)


class TokenizeError(MarinError, ValueError):
    """The documents cannot be tokenized, or the tokenizer cannot be used."""


@dataclass(frozen=True, kw_only=True)
class TokenizeConfig:
    documents_path: str
    """Documents to tokenize."""
    tokenizer_path: str
    """Folder of the tokenizer. It must name an eos_token and a bos_token, which may be null."""
    output_path: str = THIS_OUTPUT_PATH
    validation_fraction: float = versioned(0.05)
    """The share of pages on the validation side; 0 writes no validation side."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


@dataclass(frozen=True, kw_only=True)
class DocumentShard:
    """One shard of documents, with the config to tokenize it."""

    inputs: tuple[StoredFile, ...]
    """The documents, then the tokenizer's folder."""
    cache_path: str
    name: str
    validation_fraction: float

    @property
    def splits(self) -> tuple[str, ...]:
        return SPLITS if self.validation_fraction else (TRAIN,)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The ledger of each split, which is written last: the shard is finished if all exist."""
        return tuple(join(self.cache_path, split, self.name, LEDGER) for split in self.splits)


def tokenize(config: TokenizeConfig) -> dict[str, Any]:
    """Tokenize documents into Levanter caches, train and validation, and check a sample of the written tokens.

    Returns documents, tokens and bytes, tokens and documents of each split, split_overlap (pages and ids on both
    sides), and token_mismatches of the checked_documents (documents whose tokens, read back from the cache, differ from
    those of the bare tokenizer). Raises TokenizeError if a split is empty.
    """
    _check(config)
    loaded, bos, _ = load_tokenizer(config.tokenizer_path)
    metadata = _metadata(loaded, bos, config.tokenizer_path)
    documents, tokenizer = document_files(config.documents_path), folder_state(config.tokenizer_path)
    names = [f"{i:05d}" for i in range(len(documents.shards))]
    shards = [
        DocumentShard(
            inputs=(file, tokenizer),
            cache_path=config.output_path,
            name=name,
            validation_fraction=config.validation_fraction,
        )
        for name, file in zip(names, documents.shards, strict=True)
    ]
    counts = map_shards(tokenize_shard, shards, output_path=config.output_path)
    splits = SPLITS if config.validation_fraction else (TRAIN,)
    written = {split: write_split(join(config.output_path, split), names, metadata) for split in splits}
    for split, total in written.items():
        if not total["documents"]:
            raise TokenizeError(
                f"No document of {config.documents_path!r} is on the {split} side at validation_fraction="
                f"{config.validation_fraction!r}, expected at least one page there. Change the fraction."
            )
    train, validation = written[TRAIN], written.get(VALIDATION, {"tokens": 0, "documents": 0})
    return {
        "documents": train["documents"] + validation["documents"],
        "tokens": train["tokens"] + validation["tokens"],
        "bytes": counts["bytes"],
        "train_documents": train["documents"],
        "train_tokens": train["tokens"],
        "validation_documents": validation["documents"],
        "validation_tokens": validation["tokens"],
        "split_overlap": _overlap(config.output_path, names) if validation["documents"] else 0,
        "token_mismatches": counts["token_mismatches"],
        "checked_documents": counts["checked_documents"],
        "shards": len(names),
        **documents.counts,
    }


def _check(config: TokenizeConfig) -> None:
    check_fraction(config.validation_fraction)


def _metadata(tokenizer: Tokenizer, bos: int | None, tokenizer_path: str) -> dict[str, Any]:
    """Return a cache's record of its tokenizer: the digest, not the path, so that copies give the same cache."""
    return {
        "tokenizer_sha256": tokenizer_digest(tokenizer_path),
        "vocab_size": tokenizer.get_vocab_size(),
        "append_bos": bos is not None,
        "append_eos": True,
    }


def tokenizer_digest(tokenizer_path: str) -> str:
    """Return the SHA-256 of the folder's tokenizer.json, in hex."""
    return hashlib.sha256(read_bytes(join(tokenizer_path, "tokenizer.json"))).hexdigest()


def tokenize_shard(shard: DocumentShard) -> dict[str, int]:
    """Tokenize one shard into a shard of each split's cache, and read a sample back."""
    file, folder = shard.inputs
    tokenizer, bos, eos = load_tokenizer(folder.path)
    splits = {split: _Rows() for split in shard.splits}
    size = 0
    documents = read_documents(file.path)
    while batch := list(islice(documents, BATCH)):
        sides: dict[str, list[Document]] = {split: [] for split in splits}
        for document in batch:
            sides[split_of(document, shard.validation_fraction)].append(document)
            size += _bytes_of(document, file.path)
        for split, side in sides.items():
            splits[split].extend(side, _encode(tokenizer, side, bos, eos))
    mismatches = checked = 0
    metadata = _metadata(tokenizer, bos, folder.path)
    fresh, bos, eos = load_tokenizer(folder.path)
    for split, rows in splits.items():
        path = join(shard.cache_path, split, shard.name)
        write_shard(path, rows.tokens(), rows.ends(), rows.names, metadata)
        mismatches += _count_mismatches(path, rows.sample, fresh, bos, eos)
        checked += len(rows.sample)
    return {"bytes": size, "token_mismatches": mismatches, "checked_documents": checked}


@dataclass
class _Rows:
    """The tokens of one shard in one split, and the texts of the documents to check."""

    flats: list[np.ndarray] = field(default_factory=list)
    lengths: list[np.ndarray] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    sample: dict[int, str] = field(default_factory=dict)

    def extend(self, documents: list[Document], encoded: tuple[np.ndarray, np.ndarray]) -> None:
        first = len(self.names.ids)
        self.flats.append(encoded[0])
        self.lengths.append(encoded[1])
        self.names.ids += (document.id for document in documents)
        self.names.pages += map(page_of, documents)
        for row, document in enumerate(documents, start=first):
            if row < CHECKED_FIRST or row % CHECKED_EVERY == 0:
                self.sample[row] = document.text

    def tokens(self) -> np.ndarray:
        """int32 (tokens,)."""
        import numpy as np  # 0.1 s to import

        return np.concatenate([np.zeros(0, np.int32), *self.flats])

    def ends(self) -> np.ndarray:
        """int64 (documents,)."""
        import numpy as np

        return np.cumsum(np.concatenate([np.zeros(0, np.int64), *self.lengths]))


def _bytes_of(document: Document, path: str) -> int:
    try:
        return len(document.text.encode())
    except UnicodeEncodeError as error:
        raise TokenizeError(
            f"The text of document {document.id!r} in {path!r} is not valid Unicode: {error.reason} at character "
            f"{error.start}. Compute the documents again."
        ) from error


def _encode(
    tokenizer: Tokenizer, documents: list[Document], bos: int | None, eos: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return all tokens of the documents, int32 (tokens,), and the number of tokens of each, int64 (documents,)."""
    import numpy as np

    # encode_batch_fast computes no character offsets: 1.02 M tokens a CPU-second, against 0.74 M of encode_batch.
    encodings = tokenizer.encode_batch_fast([document.text for document in documents], add_special_tokens=False)
    before = 0 if bos is None else 1
    lengths = np.fromiter(map(len, encodings), np.int64, len(encodings)) + before + 1
    flat = np.empty(int(lengths.sum()), np.int32)
    ends = np.cumsum(lengths)
    if bos is not None:
        flat[ends - lengths] = bos
    flat[ends - 1] = eos
    for encoding, end, length in zip(encodings, ends.tolist(), lengths.tolist(), strict=True):
        flat[end - length + before : end - 1] = encoding.ids
    return flat, lengths


def _count_mismatches(path: str, sample: dict[int, str], tokenizer: Tokenizer, bos: int | None, eos: int) -> int:
    """Count the documents whose stored tokens differ from those of a fresh tokenizer, which encodes one at a time."""
    stored = read_documents_of(path, list(sample))
    first = [] if bos is None else [bos]
    expected = ([*first, *tokenizer.encode(text, add_special_tokens=False).ids, eos] for text in sample.values())
    return sum(stored_tokens.tolist() != tokens for stored_tokens, tokens in zip(stored, expected, strict=True))


def load_tokenizer(path: str) -> tuple[Tokenizer, int | None, int]:
    """Load the tokenizer, with the ids of its bos (None if it has none) and eos tokens.

    It encodes special tokens in a text as plain text.
    """
    if not exists(join(path, "tokenizer.json")):
        raise TokenizeError(f"No tokenizer.json exists at {path!r}. Pass the folder of a tokenizer.")
    tokenizer = read_tokenizer(path)
    names = read_json(join(path, "tokenizer_config.json"))
    if "bos_token" not in names:  # a class of tokenizers may have a default of its own
        raise TokenizeError(
            f"{join(path, 'tokenizer_config.json')!r} has no 'bos_token', expected one of its tokens, or null if it "
            "has none. Add the entry."
        )
    bos = (
        None
        if names["bos_token"] is None
        else _token_id(tokenizer, names, "bos_token", path, ", or null if it has none")
    )
    return tokenizer, bos, _token_id(tokenizer, names, "eos_token", path)


def _token_id(tokenizer: Tokenizer, names: Mapping[str, Any], kind: str, path: str, otherwise: str = "") -> int:
    name = names.get(kind)
    token: int | None = tokenizer.token_to_id(name["content"] if isinstance(name, dict) else name or "")
    if token is None:
        raise TokenizeError(f"The tokenizer at {path!r} has {kind}={name!r}, expected one of its tokens{otherwise}.")
    return token


def _overlap(output_path: str, shards: list[str]) -> int:
    """Count the pages and ids on both sides, by the written names."""
    import numpy as np

    train, validation = (
        np.fromiter(_hashes(read_names(join(output_path, split), shards)), np.int64) for split in SPLITS
    )
    return len(np.intersect1d(train, validation))


def _hashes(shards: Iterator[Names]) -> Iterator[int]:
    """Yield a 64-bit hash of each page and each id: the strings would take ten times the memory."""
    for names in shards:
        yield from map(hash, (("page", page) for page in set(names.pages)))
        yield from map(hash, (("id", name) for name in names.ids))

"""Check the inputs of a training run, before jax and Levanter are loaded (3 s).

In:  paths of token caches and of a tokenizer folder.   Out: an InputError if they do not match.

The ledger of a cache that Levanter or Marin has written has no digest of its tokenizer. Its rows decide: some are
decoded and encoded again, and most must come out as they are. Another tokenizer would give other tokens.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from marin_assets.documents.caches.token_cache import FIELD, LEDGER, SampledRow, count_tokens_in, sample_rows
from marin_assets.documents.caches.tokens import FILE as TOKENIZER
from marin_assets.documents.caches.tokens import read_tokenizer, without_settings
from marin_assets.documents.snapshots import is_snapshot, read_unchanged_snapshot
from marin_assets.stages.train.errors import InputError
from marin_assets.stages.train.specs.model import FAMILIES
from marin_resources.storage.files import exists, list_files, read_bytes, read_json, write_json
from marin_resources.storage.paths import join

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPLITS = ("train", "validation")
WEIGHTS = (".safetensors", ".safetensors.index.json", ".bin", ".pt", ".pth", ".gguf")


ROWS, TOKENS = 16, 4096
"""Rows of a cache that are compared, and tokens of each: the time is that of one document."""
CUT_OFF = 8
"""The last tokens of a row that is cut are not compared: more text would follow."""

log = logging.getLogger(__name__)


def expand_snapshots(components: Mapping[str, str]) -> dict[str, str]:
    """The components, with a component "name/key" for each partition in place of a snapshot of tokenized sets.

    Raises SnapshotError for a snapshot whose partitions have changed since.
    """
    expanded: dict[str, str] = {}
    for name, path in components.items():
        if is_snapshot(path):
            expanded |= {f"{name}/{key}": partition.path for key, partition in read_unchanged_snapshot(path).items()}
        else:
            expanded[name] = path
    return expanded


def check_inputs(
    components: Mapping[str, str], weights: Mapping[str, float] | None, tokenizer_path: str, sequence_length: int
) -> None:
    """Raise InputError unless every component has both caches, tokenized with this tokenizer, and a weight."""
    if not components:
        raise InputError("components is empty, expected at least one name with the path of a tokenized output.")
    if weights is not None:
        _check_weights(components, weights)
    digest = tokenizer_digest(tokenizer_path)
    for name, path in components.items():
        for split in SPLITS:
            check_cache(name, join(path, split), digest, tokenizer_path, sequence_length)


def tokenizer_digest(tokenizer_path: str) -> str:
    """Return the SHA-256 of the folder's tokenizer.json, in hex. Raises InputError if it has none."""
    tokenizer = join(tokenizer_path, "tokenizer.json")
    if not exists(tokenizer):
        raise InputError(f"No tokenizer.json exists at {tokenizer_path!r}. Pass the folder of a tokenizer.")
    return hashlib.sha256(read_bytes(tokenizer)).hexdigest()


def check_tokenizer(name: str, path: str, tokenizer_path: str) -> None:
    """Raise InputError unless both caches of a component were tokenized with this tokenizer."""
    digest = tokenizer_digest(tokenizer_path)
    for split in SPLITS:
        _check_digest(name, join(path, split), read_json(join(path, split, LEDGER)), digest, tokenizer_path)


def count_tokens(path: str, split: str) -> int:
    """Return the number of tokens in the cache of one split."""
    return count_tokens_in(join(path, split), read_json(join(path, split, LEDGER)))


def stage_tokenizer(path: str, folder: str, family: str = "llama") -> str:
    """Copy a tokenizer folder to the local `folder`, with the config.json that Levanter's export reads. Returns it.

    The copy, which is exported, has no truncation, padding or dropout: other programs would obey them.
    """
    os.makedirs(folder)
    for file in tokenizer_files(path):
        name, content = os.path.basename(file), read_bytes(file)
        with open(os.path.join(folder, name), "wb") as copy:
            copy.write(without_settings(content) if name == TOKENIZER else content)
    write_json(os.path.join(folder, "config.json"), {"model_type": family, "architectures": [FAMILIES[family]]})
    return folder


def set_chat_template(folder: str, chat_template: str) -> None:
    """Give the tokenizer in a local folder its chat template, with which an exported model can chat."""
    path = join(folder, "tokenizer_config.json")
    write_json(path, {**read_json(path), "chat_template": chat_template})


def tokenizer_files(path: str) -> list[str]:
    """The files of a tokenizer. Its folder may be a model's, with weights."""
    return [file for file in list_files(path) if not file.endswith(WEIGHTS) and os.path.basename(file) != "config.json"]


def _check_weights(components: Mapping[str, str], weights: Mapping[str, float]) -> None:
    if set(weights) != set(components):
        raise InputError(
            f"train_weights names {sorted(weights)} and components {sorted(components)}, expected the same names."
        )
    if any(weight < 0 for weight in weights.values()) or not any(weights.values()):
        raise InputError(f"train_weights is {dict(weights)!r}, expected numbers of 0 or more, one of them above 0.")


def check_cache(name: str, path: str, digest: str, tokenizer_path: str, sequence_length: int) -> None:
    """Raise InputError unless a cache of at least one sequence exists, tokenized with this tokenizer."""
    if not exists(join(path, LEDGER)):
        raise InputError(
            f"Component {name!r} has no cache at {path!r}. Pass the output of a tokenized step; only a member of a "
            "mixture may lack a validation side."
        )
    ledger = read_json(join(path, LEDGER))
    if not ledger.get("is_finished", True):
        raise InputError(
            f"Component {name!r} has a cache at {path!r} that is not finished. Let the program that writes it finish."
        )
    _check_digest(name, path, ledger, digest, tokenizer_path)
    tokens = count_tokens_in(path, ledger)
    if tokens < sequence_length:
        raise InputError(
            f"Component {name!r} has {tokens} tokens at {path!r}, expected at least one sequence of {sequence_length}. "
            "Pass more documents, another validation_fraction, or a smaller max_seq_len."
        )


def _check_digest(name: str, path: str, ledger: Mapping[str, Any], digest: str, tokenizer_path: str) -> None:
    metadata: dict[str, Any] = (ledger.get("metadata") or {}).get("preprocessor_metadata") or {}
    if "tokenizer_sha256" not in metadata:
        check_foreign_cache(name, path, ledger, tokenizer_path)
    elif metadata["tokenizer_sha256"] != digest:
        raise InputError(
            f"Component {name!r} at {path!r} was tokenized with another tokenizer than {tokenizer_path!r}. "
            "Tokenize the documents with the model's tokenizer."
        )


def check_foreign_cache(name: str, path: str, ledger: Mapping[str, Any], tokenizer_path: str) -> None:
    """Raise InputError unless the cache of one split has documents with the tokens of this tokenizer."""
    metadata: Mapping[str, Any] = (ledger.get("metadata") or {}).get("preprocessor_metadata") or {}
    fields = sorted(ledger.get("field_counts") or {FIELD: 0})
    if fields != [FIELD] or "chat_template" in metadata or "chosen" in metadata:
        raise InputError(
            f"Component {name!r} at {path!r} was written by another program, with {', '.join(map(repr, fields))}, "
            "expected documents, which have 'input_ids' alone. Tokenize chats with tokenize_chats, and preferences "
            "with tokenize_preferences."
        )
    tokenizer = read_tokenizer(tokenizer_path, special_tokens=True)
    size = tokenizer.get_vocab_size()
    if metadata.get("vocab_size", size) != size:
        raise InputError(
            f"Component {name!r} at {path!r} was tokenized with a tokenizer of {metadata['vocab_size']} tokens, and "
            f"{tokenizer_path!r} has {size}. Pass the tokenizer of the cache as tokenizer_path."
        )
    ends = [_special_id(tokenizer, tokenizer_path, kind) for kind in ("bos_token", "eos_token")]
    rows = list(sample_rows(path, ledger, rows=ROWS, tokens=TOKENS))
    equal = sum(_is_encoded_by(tokenizer, row, *ends) for row in rows)
    if rows and equal * 2 <= len(rows):
        raise InputError(
            f"Component {name!r} at {path!r} was tokenized with another tokenizer than {tokenizer_path!r}: of "
            f"{len(rows)} rows only {equal} are the tokens that it gives their text, with its eos token at the end. "
            "Pass the tokenizer of the cache as tokenizer_path, or tokenize the documents again."
        )
    log.info("%s: of %d rows, %d are the tokens that %s gives their text", path, len(rows), equal, tokenizer_path)


def _is_encoded_by(tokenizer: Tokenizer, row: SampledRow, bos: int | None, eos: int | None) -> bool:
    """Whether a row is [bos, *tokens, eos], and its text has these tokens. A tokenizer may have no bos, or no eos."""
    if eos is not None and row.last != eos:
        return False
    body = row.tokens if row.is_cut or eos is None else row.tokens[:-1]
    body = body[1:] if bos is not None and body[:1] == [bos] else body
    again = tokenizer.encode(tokenizer.decode(body, skip_special_tokens=False), add_special_tokens=False).ids
    return again[: len(body) - CUT_OFF] == body[:-CUT_OFF] if row.is_cut else again == body


def _special_id(tokenizer: Tokenizer, tokenizer_path: str, kind: str) -> int | None:
    token = read_json(join(tokenizer_path, "tokenizer_config.json")).get(kind)
    content = token["content"] if isinstance(token, dict) else token
    return None if content is None else tokenizer.token_to_id(content)

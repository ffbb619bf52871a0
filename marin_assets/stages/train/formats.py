"""The formats of the rows of a token cache: documents, chats or preferences. Each is trained on in its own way.

The ledger of a cache has the format, the chat template, and the window that its chats were cut at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.caches.token_cache import LEDGER
from marin_assets.stages.train.errors import InputError
from marin_assets.step.values import versioned
from marin_resources.storage.files import exists, read_json
from marin_resources.storage.paths import join

DOCUMENT, CHAT, PREFERENCE = "document", "chat", "preference"


@dataclass(frozen=True, kw_only=True)
class ChatSpec:
    """Settings of the training on chats: the loss is that of the assistant's tokens alone."""

    chats_per_sequence: int = versioned(64)
    """Most chats that are packed into one sequence, each of which sees itself alone; 1 packs none, and pads."""


@dataclass(frozen=True, kw_only=True)
class ChatFormat:
    """The format that all caches of chats in a training have in common; the exported model has it too."""

    template: str
    stop_token_id: int
    """Ends an answer."""


def format_of(path: str) -> str:
    """Return the format of a tokenized output: "document", "chat" or "preference"."""
    return str(metadata_of(path).get("format", DOCUMENT))


def metadata_of(path: str) -> dict[str, Any]:
    """Return the metadata of the rows in the ledger of the train side; of the validation side, if no other exists."""
    train = join(path, "train", LEDGER)
    ledger = read_json(train if exists(train) else join(path, "validation", LEDGER))
    metadata: dict[str, Any] = (ledger.get("metadata") or {}).get("preprocessor_metadata") or {}
    return metadata


def rows_in(path: str, split: str) -> int:
    """Return the number of rows in the cache of one split."""
    return int(read_json(join(path, split, LEDGER))["total_num_rows"])


def chat_format(components: Mapping[str, str]) -> ChatFormat | None:
    """Return the format of all chats and preferences; None without any. Raises InputError if they differ."""
    formats = {
        name: ChatFormat(template=metadata["chat_template"], stop_token_id=metadata["stop_token_id"])
        for name, metadata in ((name, metadata_of(path)) for name, path in components.items())
        if "chat_template" in metadata
    }
    if len(set(formats.values())) > 1:
        raise InputError(
            f"The components {sorted(formats)} were tokenized with different chat templates, expected one, as the "
            "model has one. Tokenize them with the same chat_template."
        )
    return next(iter(formats.values()), None)


def check_formats(components: Mapping[str, str], chat: ChatSpec | None, max_seq_len: int) -> None:
    """Raise InputError unless the caches of `train_lm` are documents, and chats only with a ChatSpec."""
    formats = {name: format_of(path) for name, path in components.items()}
    for name, row_format in formats.items():
        if row_format == PREFERENCE:
            raise InputError(
                f"Component {name!r} at {components[name]!r} has preferences, which train_lm cannot train on. "
                "Use default_dpo."
            )
        if row_format == CHAT and chat is None:
            raise InputError(
                f"Component {name!r} at {components[name]!r} has chats, and chat is None: their questions would be "
                "learnt too. Pass chat=ChatSpec(), or use default_sft."
            )
        if row_format == CHAT:
            check_window(name, components[name], max_seq_len)
    if chat is None:
        return
    if CHAT not in formats.values():
        raise InputError(
            f"chat is given, and none of the components {sorted(formats)} has chats. Pass one, or no chat."
        )
    chat_format(components)


def check_preferences(name: str, path: str, max_seq_len: int, batch_size: int) -> None:
    """Raise InputError unless the cache has preferences that fit, and a batch of them on the validation side."""
    for split in ("train", "validation"):
        if not exists(join(path, split, LEDGER)):
            raise InputError(
                f"Component {name!r} has no cache at {join(path, split)!r}. Pass the output of tokenize_preferences "
                "with a validation_fraction above 0."
            )
    if format_of(path) != PREFERENCE:
        raise InputError(
            f"Component {name!r} at {path!r} has rows of the format {format_of(path)!r}, expected preferences. Pass "
            "the output of tokenize_preferences."
        )
    check_window(name, path, max_seq_len)
    if (rows := rows_in(path, "validation")) < batch_size:
        raise InputError(
            f"Component {name!r} has {rows} preferences on its validation side, expected at least one batch of "
            f"{batch_size}. Pass more preferences, a greater validation_fraction or a smaller train_batch_size."
        )


def check_window(name: str, path: str, max_seq_len: int) -> None:
    """Raise InputError if rows may be longer than a sequence: Levanter would cut them, or fail in the middle."""
    window = metadata_of(path)["max_seq_len"]
    if window > max_seq_len:
        raise InputError(
            f"Component {name!r} at {path!r} has rows of up to {window} tokens, and the model a max_seq_len of "
            f"{max_seq_len}: they would be cut without being counted. Tokenize with max_seq_len={max_seq_len}."
        )

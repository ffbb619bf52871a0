"""Rows become token caches shard by shard: what the stages of chats and of preferences share.

Every row is kept, or counted by the reason for which it is rejected; a kept row is counted by each key that is not
read. The side of the split depends on a hash of the row's "id", or of its content if it has none. The bytes depend only
on the rows, the tokenizer and the config.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from marin_assets.documents import BadRow, document_files, read_rows
from marin_assets.documents.caches.token_cache import LEDGER
from marin_assets.documents.chats.adapters import Adapter, adapter_of, count_unread
from marin_assets.documents.chats.forms import FORMS
from marin_assets.documents.chats.messages import TRAINED, TRAINED_WITH_TOOLS, Messages, Rules
from marin_assets.documents.chats.not_a_chat import NotAChat
from marin_assets.documents.chats.preferences import PAIR_FORMS, pair_adapter_of
from marin_assets.documents.chats.tools import Tools, tools_of
from marin_assets.documents.position import POSITIONS, SPLITS, TRAIN, VALIDATION, check_fraction, position
from marin_assets.stages.tokenize.cache import Names, read_documents_of, write_rows, write_split
from marin_assets.stages.tokenize.chat.encoder import Chat, ChatEncoder, Encoded
from marin_assets.stages.tokenize.chat.window import CacheRow, chat_row, preference_row
from marin_assets.stages.tokenize.tokenize import TokenizeError
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.ray_tpu.shards.file_shards import folder_state
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import StoredFile
from marin_resources.storage.paths import join
from marin_resources.types.near_names import expected_one_of

if TYPE_CHECKING:
    import numpy as np

BATCH = 512
"""Rows that are encoded together."""
TOOLS = "tools"
"""The key of a row's definitions of tools."""
CHECKED_FIRST, CHECKED_EVERY = 8, 200
"""The first 8 rows and one in 200 of each shard and split are read back and compared."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of rows: one chat each, or a pair of chats."""

    forms: Mapping[str, Any]
    """The shapes of rows, by the names of their adapters."""
    adapter_of: Callable[[Any, Rules], Adapter[Any]]
    chats: Callable[[Any], tuple[Messages, ...]]
    """The chats of what an adapter returns."""
    row: Callable[..., CacheRow]
    """Encoded chats and the window, to a row of the cache."""
    fields: tuple[str, ...]


KINDS_OF_ROWS = {
    "chat": Kind(
        forms=FORMS,
        adapter_of=adapter_of,
        chats=lambda chat: (chat,),
        row=chat_row,
        fields=("input_ids", "assistant_masks"),
    ),
    "preference": Kind(
        forms=PAIR_FORMS,
        adapter_of=pair_adapter_of,
        chats=tuple,
        row=preference_row,
        fields=("chosen_assistant_masks", "chosen_input_ids", "rejected_assistant_masks", "rejected_input_ids"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class TokenizeRowsConfig:
    """Fields of both stages."""

    tokenizer_path: str
    """Folder of the tokenizer of the model that is trained."""
    chat_template: str
    """Text of the template, that which the model of preferences was trained with; named_template("plain") has that of a
    name, versioned."""
    max_seq_len: int
    """Tokens of a training sequence, versioned(): longer chats are cut, longer preferences are rejected."""
    output_path: str = THIS_OUTPUT_PATH
    validation_fraction: float = versioned(0.05)
    """The share of rows on the validation side; 0 writes no validation side."""


@dataclass(frozen=True, kw_only=True)
class RowShard:
    """One file of rows, with the config to tokenize it."""

    kind: str
    inputs: tuple[StoredFile, ...]
    """The rows, then the tokenizer's folder."""
    cache_path: str
    name: str
    adapter: str
    chat_template: str
    max_seq_len: int
    validation_fraction: float

    @property
    def outputs(self) -> tuple[str, ...]:
        """The ledger of each split, which is written last: the shard is finished if all exist."""
        splits = SPLITS if self.validation_fraction else (TRAIN,)
        return tuple(join(self.cache_path, split, self.name, LEDGER) for split in splits)


def tokenize_rows(kind: str, rows_path: str, config: Any) -> dict[str, Any]:
    """Write the caches of all rows below `rows_path`. `config` has the fields that both stages have.

    Returns rows, kept, rejected and rejected_<reason>, rows_unaccounted, unread_<key> (rows), tokens, loss_tokens, cut
    (rows) and cut_tokens, rows and tokens of each side, checked_rows with their token_mismatches and prompt_mismatches,
    shards.
    """
    check_rows(kind, config)
    encoder = ChatEncoder(config.tokenizer_path, config.chat_template)
    files, tokenizer = document_files(rows_path), folder_state(config.tokenizer_path)
    names = [f"{i:05d}" for i in range(len(files.shards))]
    shards = [
        RowShard(
            kind=kind,
            inputs=(file, tokenizer),
            cache_path=config.output_path,
            name=name,
            adapter=config.adapter,
            chat_template=config.chat_template,
            max_seq_len=config.max_seq_len,
            validation_fraction=config.validation_fraction,
        )
        for name, file in zip(names, files.shards, strict=True)
    ]
    counts = map_shards(tokenize_shard, shards, output_path=config.output_path)
    metadata = _metadata(encoder, kind, config.max_seq_len)
    splits = SPLITS if config.validation_fraction else (TRAIN,)
    written = {split: write_split(join(config.output_path, split), names, metadata) for split in splits}
    for split, total in written.items():
        if not total["documents"]:
            raise TokenizeError(_empty(rows_path, split, counts, config))
    train, validation = written[TRAIN], written.get(VALIDATION, {"tokens": 0, "documents": 0})
    kept, reasons = counts["kept"], _counts_of("rejected_", counts)
    return {
        "rows": counts["rows"],
        "kept": kept,
        "rejected": sum(reasons.values()),
        **reasons,
        "rows_unaccounted": counts["rows"] - kept - sum(reasons.values()),
        "tokens": train["tokens"] + validation["tokens"],
        **_counts_of("unread_", counts),
        **{name: counts[name] for name in ("loss_tokens", "cut", "cut_tokens")},
        "train_rows": train["documents"],
        "train_tokens": train["tokens"],
        "validation_rows": validation["documents"],
        "validation_tokens": validation["tokens"],
        **{name: counts[name] for name in ("checked_rows", "token_mismatches", "prompt_mismatches")},
        "shards": len(names),
        **files.counts,
    }


def _counts_of(prefix: str, counts: Mapping[str, int | float]) -> dict[str, int | float]:
    return {name: n for name, n in sorted(counts.items()) if name.startswith(prefix)}


def tokenize_shard(shard: RowShard) -> dict[str, int]:
    """Tokenize one shard into a shard of each split's cache, and read a sample back."""
    file, folder = shard.inputs
    encoder, kind = ChatEncoder(folder.path, shard.chat_template), KINDS_OF_ROWS[shard.kind]
    adapter = kind.adapter_of(kind.forms[shard.adapter], TRAINED_WITH_TOOLS if encoder.renders_tools else TRAINED)
    sides = {split: _Side(kind.fields) for split in (SPLITS if shard.validation_fraction else (TRAIN,))}
    counts = Counter(rows=0, kept=0, loss_tokens=0, cut=0, cut_tokens=0)
    rows = read_rows(file.path)
    while batch := list(islice(rows, BATCH)):
        counts["rows"] += len(batch)
        for name, chats, unread, encoded in _encoded(batch, adapter, kind, encoder, counts):
            try:
                row = kind.row(*encoded, shard.max_seq_len)
            except NotAChat as reason:
                counts[f"rejected_{reason.reason}"] += 1
                continue
            side = sides[_split_of(name, shard.validation_fraction)]
            side.add(name, row, chats)
            counts.update(kept=1, loss_tokens=row.loss_tokens, cut=int(row.cut_tokens > 0), cut_tokens=row.cut_tokens)
            count_unread(counts, unread)
    for split, side in sides.items():
        path = join(shard.cache_path, split, shard.name)
        write_rows(path, side.arrays(), side.names, _metadata(encoder, shard.kind, shard.max_seq_len))
        counts.update(side.check(path, encoder, kind, shard.max_seq_len))
    return dict(counts)


def _encoded(
    batch: list[tuple[int, Any]], adapter: Adapter[Any], kind: Kind, encoder: ChatEncoder, counts: Counter[str]
) -> Iterator[tuple[str, tuple[Chat, ...], set[str], list[Encoded]]]:
    """Yield name, chats, unread keys and tokens of each row that is one; count the others."""
    read: list[tuple[str, tuple[Chat, ...], set[str]]] = []
    for _, row in batch:
        try:
            if isinstance(row, BadRow):
                raise NotAChat(row.reason)
            sides = kind.chats(adapter.read(row))
            tools: Tools = tools_of(row.get(TOOLS)) if encoder.renders_tools else []
            unread = adapter.unread(row) - ({TOOLS} if encoder.renders_tools else set())
            read.append((_name_of(row, sides), tuple(Chat(messages, tools) for messages in sides), unread))
        except NotAChat as reason:
            counts[f"rejected_{reason.reason}"] += 1
    results = iter(encoder.encode([chat for _, chats, _ in read for chat in chats]))
    for name, chats, unread in read:
        encoded = [next(results) for _ in chats]
        refused = next((result for result in encoded if isinstance(result, NotAChat)), None)
        if refused is not None:
            counts[f"rejected_{refused.reason}"] += 1
        else:
            yield name, chats, unread, [result for result in encoded if isinstance(result, Encoded)]


def _name_of(row: Mapping[str, Any], chats: tuple[Messages, ...]) -> str:
    """The row's id, or a hash of its messages."""
    if isinstance(row.get("id"), str | int) and row["id"] != "":
        return str(row["id"])
    try:
        return hashlib.sha256(json.dumps(chats, ensure_ascii=False).encode()).hexdigest()[:32]
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise NotAChat("invalid_unicode") from error


def _split_of(name: str, validation_fraction: float) -> str:
    return VALIDATION if position(name) < validation_fraction * POSITIONS else TRAIN


@dataclass
class _Side:
    """The rows of one shard in one split, and the chats of those to check."""

    fields: tuple[str, ...]
    names: Names = field(default_factory=Names)
    values: dict[str, list[np.ndarray]] = field(default_factory=dict)
    sample: dict[int, tuple[Chat, ...]] = field(default_factory=dict)

    def add(self, name: str, row: CacheRow, chats: tuple[Chat, ...]) -> None:
        import numpy as np  # 0.1 s to import

        index = len(self.names.ids)
        self.names.ids.append(name)
        for field_name, value in row.fields.items():
            self.values.setdefault(field_name, []).append(np.array(value, np.int32))
        if index < CHECKED_FIRST or index % CHECKED_EVERY == 0:
            self.sample[index] = chats

    def arrays(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The values of each field, int32, and the ends of the rows in them, int64."""
        import numpy as np

        arrays = {}
        for name in self.fields:
            rows = self.values.get(name, [])
            ends = np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)))
            arrays[name] = (np.concatenate([np.zeros(0, np.int32), *rows]), ends)
        return arrays

    def check(self, path: str, encoder: ChatEncoder, kind: Kind, max_seq_len: int) -> dict[str, int]:
        """Compare the stored rows of the sample with rows that are encoded one at a time, and with their prompts."""
        stored = {name: read_documents_of(path, list(self.sample), name) for name in self.fields} if self.sample else {}
        mismatches = prompts = 0
        for i, chats in enumerate(self.sample.values()):
            encoded = [result for chat in chats for result in encoder.encode([chat]) if isinstance(result, Encoded)]
            row = kind.row(*encoded, max_seq_len)
            mismatches += any(stored[name][i].tolist() != row.fields[name] for name in self.fields)
            prompts += not all(map(encoder.prompt_matches, chats, encoded))
        return {"checked_rows": len(self.sample), "token_mismatches": mismatches, "prompt_mismatches": prompts}


def _metadata(encoder: ChatEncoder, kind: str, max_seq_len: int) -> dict[str, Any]:
    """A cache's record of the form of its rows, which training compares."""
    return {**encoder.metadata, "format": kind, "max_seq_len": max_seq_len}


def check_rows(kind: str, config: Any) -> None:
    """Raise SplitError or TokenizeError for a config that no rows could be tokenized with. No file is read."""
    check_fraction(config.validation_fraction)
    forms = KINDS_OF_ROWS[kind].forms
    if config.adapter not in forms:
        raise TokenizeError(f"adapter is {config.adapter!r}, {expected_one_of(config.adapter, forms)}")
    if isinstance(config.max_seq_len, bool) or not isinstance(config.max_seq_len, int) or config.max_seq_len < 2:
        raise TokenizeError(
            f"max_seq_len is {config.max_seq_len!r}, expected a number of tokens of at least 2: that of the model."
        )


def _empty(rows_path: str, split: str, counts: Mapping[str, int | float], config: Any) -> str:
    reasons = {name.removeprefix("rejected_"): n for name, n in _counts_of("rejected_", counts).items()}
    return (
        f"No row of {rows_path!r} is on the {split} side at validation_fraction={config.validation_fraction!r}, "
        f"expected at least one there. Of {counts['rows']} rows {counts['kept']} are kept, and these are rejected: "
        f"{reasons or 'none'}. Check the adapter {config.adapter!r}, max_seq_len and the fraction."
    )

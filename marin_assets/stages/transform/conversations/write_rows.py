"""All rows of a folder: equal ones once, over all files, in bounded memory, whatever the shards.

Rows are read twice. The first time the content of each is hashed; `documents/equal` then finds the equal ones and the
first of them, by file and row; the second time the documents are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from marin_assets.documents import BadRow, DocumentFiles, document_files, document_shards, read_rows, write_rows
from marin_assets.documents.chats.adapters import count_unread
from marin_assets.documents.chats.not_a_chat import NotAChat
from marin_assets.documents.equal.copies import Copies, DecideConfig, decide_copies
from marin_assets.documents.equal.hashes import Batch, write_hashes
from marin_assets.stages.transform.conversations.fields import ConversationError
from marin_assets.stages.transform.conversations.read_rows import ReadRow, RowReader
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts, map_shards

DAMAGES = ("too_long", "invalid_utf8", "invalid_json", "not_an_object")
DUPLICATE = "duplicate"
REASONS = (
    "no_messages", "unknown_role", "not_text", "empty_message", "tool_calls", "bad_tool_call", "bad_tools",
    "unknown_weight", "two_systems", "only_system", "no_assistant", "nothing_to_learn", "no_answer_at_the_end",
    "not_alternating", "no_id", "bad_metadata", "invalid_unicode", "left_out", DUPLICATE,
)  # fmt: skip


def write_all(config: Any) -> dict[str, int | float]:
    """Write the documents of all rows.

    Returns records, the kept ones under their name, rejected, each rejected_<reason>, records_unaccounted, and each
    unread_<key>. Raises ConversationError for too many rejected rows, or if none is kept.
    """
    files = document_files(config.rows_path)
    if config.duplicates == "reject":
        counts = decide_copies(files, config.output_path, config, hash_units=hash_shard, decide_units=write_shard)
        counts.pop("groups")
    else:
        shards = document_shards(files, config.output_path, config)
        counts = map_shards(write_shard, shards, output_path=config.output_path)
    _require_enough(config, files, counts)
    kept = config.kept_name
    return {
        "records": counts["records"],
        kept: counts[kept],
        **{name: counts[name] for name in counts if name not in ("records", kept)},
        "records_unaccounted": counts["records"] - counts[kept] - counts["rejected"],
        **files.counts,
    }


def hash_shard(shard: FileShard) -> Counts:
    """The first reading of a group of files. Returns units."""
    return {"units": write_hashes(shard.outputs[0], _hashed(shard))}


def _hashed(shard: FileShard) -> Iterator[Batch]:
    reader = shard.config.config.reader()
    for number, file in enumerate(shard.inputs, start=shard.config.first_shard):
        for place, (_, row) in enumerate(read_rows(file.path)):
            try:
                yield (reader.read(row).digest,), 0, number, place
            except NotAChat:  # counted by the second reading
                continue


def write_shard(shard: FileShard) -> Counts:
    """The second reading of a group of files. Returns the counts of `write_all`."""
    is_decided = isinstance(shard.config, DecideConfig)
    config = shard.config.config if is_decided else shard.config
    copies = Copies(shard.config) if is_decided else None
    first = shard.config.first_shard if is_decided else 0
    names = ("records", config.kept_name, "rejected")
    reasons = (*DAMAGES, *REASONS, *config.more_reasons)
    counts = Counter(dict.fromkeys((*names, *(f"rejected_{reason}" for reason in reasons)), 0))
    reader = config.reader()
    for number, (file, target) in enumerate(zip(shard.inputs, shard.outputs, strict=True), start=first):
        write_rows(target, _documents(file.path, number, reader, copies, config.kept_name, counts), replace=False)
    return dict(counts)


def _documents(
    path: str, number: int, reader: RowReader, copies: Copies | None, kept: str, counts: Counter[str]
) -> Iterator[Mapping[str, Any]]:
    for place, (_, row) in enumerate(read_rows(path)):
        counts["records"] += 1
        try:
            read = _unless_copy(reader.read(row), copies, number, place)
        except NotAChat as reason:
            counts.update(rejected=1)
            counts[f"rejected_{reason.reason}"] += 1
            continue
        counts[kept] += 1
        count_unread(counts, read.unread)
        yield read.document


def _unless_copy(read: ReadRow, copies: Copies | None, number: int, place: int) -> ReadRow:
    if copies is not None and not copies.of(number, place)[1]:
        raise NotAChat(DUPLICATE)
    return read


def _require_enough(config: Any, files: DocumentFiles, counts: Counts) -> None:
    records, path = counts["records"], config.rows_path
    if not records:
        raise ConversationError(f"The files of {path!r} have no rows. Correct rows_path or the files.")
    damaged = sum(counts[f"rejected_{reason}"] for reason in DAMAGES)
    if damaged > config.max_damaged_fraction * records:
        raise ConversationError(
            f"{damaged:,} of the {records:,} lines of {path!r} are no rows ({_reasons(counts, DAMAGES)}), more than "
            f"max_damaged_fraction {config.max_damaged_fraction:g}. Download the files again, or raise it."
        )
    rejected = counts["rejected"] - counts[f"rejected_{DUPLICATE}"] - damaged
    if not counts[config.kept_name]:
        raise ConversationError(
            f"The {records:,} rows of {path!r} have no {config.kept_name} ({_reasons(counts)}){_columns_note(files)}. "
            f"Check the adapter {config.adapter!r} and the reasons."
        )
    if rejected > config.max_rejected_fraction * records:
        raise ConversationError(
            f"{rejected:,} of the {records:,} rows of {path!r} are no {config.kept_name} ({_reasons(counts)}), more "
            f"than max_rejected_fraction {config.max_rejected_fraction:g}{_columns_note(files)}. Check the adapter "
            f"{config.adapter!r} and the reasons, or raise max_rejected_fraction."
        )


def _reasons(counts: Counts, names: tuple[str, ...] = ()) -> str:
    named = {name.removeprefix("rejected_"): n for name, n in counts.items() if name.startswith("rejected_") and n}
    return ", ".join(f"{n:,} {name}" for name, n in sorted(named.items()) if not names or name in names)


def _columns_note(files: DocumentFiles) -> str:
    row = next((row for _, row in read_rows(files.shards[0].path) if not isinstance(row, BadRow)), None)
    columns = "none" if not row else ", ".join(f"{name!r:.60}" for name in list(row)[:20])
    return f"; the first row has the columns {columns}"

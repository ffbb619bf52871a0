"""Rows of chats and of preferences that are converted in a folder, and what they became."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from marin_assets.documents import list_shards, read_rows
from marin_assets.stages.transform.conversations.conversations import ConversationsConfig, conversations
from marin_assets.stages.transform.conversations.preferences import PreferencesConfig, preferences
from marin_assets.stages.transform.conversations.threads import ThreadsConfig, join_threads
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_bytes, stored_files

STAGES: Mapping[type, Any] = {
    ConversationsConfig: conversations,
    PreferencesConfig: preferences,
    ThreadsConfig: join_threads,
}
LENIENT = {"max_rejected_fraction": 1.0, "max_damaged_fraction": 1.0}


def reading(of: str, **changes: Any) -> dict[str, Any]:
    return {"rows_path": f"{of}/rows", "output_path": f"{of}/out", **changes}


def convert(kind: type, folder: Path | str, **changes: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run the stage of a config over the rows in the folder. Returns its result, and the rows that it wrote."""
    config = unwrap_versioned_value(kind(**reading(str(folder), **changes)))
    result = STAGES[kind](config)
    return result, written(config.output_path)


def converted(
    kind: type, folder: Path, rows: Iterable[Mapping[str, Any] | str], **changes: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Write the rows as lines of one file, and convert them."""
    write(folder / "rows/a.jsonl", rows)
    return convert(kind, folder, **changes)


def write(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))


def written(output: str) -> list[dict[str, Any]]:
    return [dict(row) for shard in list_shards(output) for _, row in read_rows(shard) if isinstance(row, dict)]


def contents(output: str) -> dict[str, bytes]:
    """The bytes of all shards of an output."""
    return {
        file.name: read_bytes(file.path) for file in stored_files(output) if file.name.endswith((".zst", ".parquet"))
    }


def reasons(result: Mapping[str, Any]) -> dict[str, int]:
    """The reasons with a row."""
    return {k.removeprefix("rejected_"): n for k, n in result.items() if k.startswith("rejected_") and n}

"""Rows that change between the two readings, or between two attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from converted import contents, convert, reasons, write
from sum_chats import chat_of

from marin_assets.stages.transform.conversations import write_rows as stage
from marin_assets.stages.transform.conversations.conversations import ConversationsConfig
from marin_resources.ray_tpu.shards.map_shards import ShardError

FILES = 3


def write_files(folder: Path, changed: int | None = None) -> None:
    """Ten rows a file. A changed file has the rows of the first one, and more of them."""
    for i in range(FILES):
        first = 0 if i == changed else 10 * i
        rows = [{"messages": chat_of(f"{first + n}?", "yes")} for n in range(13 if i == changed else 10)]
        write(folder / f"rows/{i}.jsonl", rows)


def test_rows_that_change_between_the_two_readings_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path)
    copies = stage.Copies

    def changing(config: Any) -> Any:
        write(tmp_path / "rows/2.jsonl", [{"messages": chat_of("other", "rows")}])
        return copies(config)

    monkeypatch.setattr(stage, "Copies", changing)
    with pytest.raises(ShardError, match=r"2\.jsonl"):
        convert(ConversationsConfig, tmp_path)


def test_an_attempt_after_a_change_has_the_bytes_of_a_first_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path)
    written: list[str] = []
    write_rows = stage.write_rows

    def dies(path: str, *arguments: Any, **named: Any) -> Any:
        if len(written) == 1:
            raise KeyboardInterrupt
        written.append(path)
        return write_rows(path, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(stage, "write_rows", dies)
        with pytest.raises(KeyboardInterrupt):
            convert(ConversationsConfig, tmp_path)
    write_files(tmp_path, changed=2)
    again = convert(ConversationsConfig, tmp_path)
    fresh = convert(ConversationsConfig, tmp_path, output_path=f"{tmp_path}/fresh")
    assert again == fresh
    assert reasons(again[0]) == {"duplicate": 13}
    assert contents(f"{tmp_path}/out") == contents(f"{tmp_path}/fresh")

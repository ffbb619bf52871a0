"""The table of the ids of all shards: each id leads to its row, and equal shards have equal tables."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import shard_name, write_rows
from marin_assets.documents.document import DocumentError
from marin_assets.documents.frames import id_merge
from marin_assets.documents.frames.id_merge import merge_ids
from marin_assets.documents.frames.id_table import NAME, open_id_table
from marin_assets.documents.frames.pages import read_page
from marin_resources.ray_tpu.worker.run_task import Placement, run
from marin_resources.storage.files import remove
from marin_resources.storage.paths import join
from marin_resources.types.output import Output
from marin_resources.wire.config_json import encode
from marin_resources.wire.outcome import End
from marin_resources.wire.reference import reference_to
from marin_resources.wire.task import Task

SHARDS, ROWS = 10, 40


def rows_of(shard: int, count: int = ROWS) -> Iterator[dict[str, Any]]:
    chance = random.Random(shard)
    for number in range(count):
        yield {"id": f"{shard}/{number} é", "text": chance.randbytes(700).hex()}


def write_shards(path: str, shards: int = SHARDS) -> None:
    for shard in range(shards):
        write_rows(join(path, shard_name(shard, shards)), rows_of(shard))


def test_every_id_leads_to_its_shard_and_row(any_prefix: str) -> None:
    write_shards(any_prefix)
    write_rows(join(any_prefix, "empty.jsonl.zst"), [])
    write_rows(join(any_prefix, "twice.jsonl.zst"), rows_of(3))
    merge_ids(any_prefix)
    table = open_id_table(any_prefix)
    assert table is not None
    assert (table.ids, table.others, len(table.shards)) == ((SHARDS + 1) * ROWS, 0, SHARDS + 2)
    for shard in range(SHARDS):
        for number, row in enumerate(rows_of(shard)):
            names = [shard_name(shard, SHARDS), *(["twice.jsonl.zst"] if shard == 3 else [])]
            assert [(place.name, at) for place, at in table.places(row["id"])] == [(name, number) for name in names]
    first, at = table.places("7/5 é")[0]
    assert read_page(join(any_prefix, first.name), start=at, count=1).rows == [list(rows_of(7))[5]]
    assert table.places("nowhere") == []


def test_equal_shards_have_equal_tables_in_whatever_parts_they_are_sorted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = []
    for name, part, at_once in (("a", id_merge.PART_IDS, 128), ("b", 7, 3)):
        monkeypatch.setattr(id_merge, "PART_IDS", part)
        monkeypatch.setattr(id_merge, "AT_ONCE", at_once)
        write_shards(str(tmp_path / name))
        merge_ids(str(tmp_path / name))
        tables.append((tmp_path / name / NAME).read_bytes())
    assert tables[0] == tables[1]


def test_files_without_an_index_of_ids_are_counted_and_searched_by_themselves(tmp_path: Path) -> None:
    write_shards(str(tmp_path))
    write_rows(str(tmp_path / "old.jsonl.gz"), rows_of(90))
    write_rows(str(tmp_path / "small.jsonl.zst"), [{"id": "s", "keep": True}])
    (tmp_path / "broken.jsonl.zst").write_bytes((tmp_path / shard_name(0, SHARDS)).read_bytes()[:-40] + b"x" * 40)
    merge_ids(str(tmp_path))
    table = open_id_table(str(tmp_path))
    assert table is not None
    assert table.others == 3


def test_an_output_of_few_shards_has_no_table_nor_that_of_an_attempt_before(tmp_path: Path) -> None:
    write_shards(str(tmp_path))
    merge_ids(str(tmp_path))
    assert open_id_table(str(tmp_path)) is not None
    for shard in range(4):
        remove(str(tmp_path / shard_name(shard, SHARDS)))
    merge_ids(str(tmp_path))
    assert open_id_table(str(tmp_path)) is None
    merge_ids(str(tmp_path / "nothing"))


def test_without_numpy_an_output_is_whole_without_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in an extra, which an environment of base packages lacks."""
    write_shards(str(tmp_path))
    monkeypatch.setitem(sys.modules, "numpy", None)
    merge_ids(str(tmp_path))
    assert not (tmp_path / NAME).exists()
    assert "are not in a table" in caplog.text


def test_a_damaged_table_is_a_sentence_wherever_a_byte_was_changed(tmp_path: Path) -> None:
    write_shards(str(tmp_path))
    merge_ids(str(tmp_path))
    path = tmp_path / NAME
    whole = path.read_bytes()
    for place in (0, 9, 25, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        if place == 9:  # another version
            assert open_id_table(str(tmp_path)) is None
            continue
        with pytest.raises(DocumentError, match=r"The table of ids .* is damaged: .* Remove the file"):
            read_all(str(tmp_path))
    for length in (1, 20, 60, len(whole) - 5):
        path.write_bytes(whole[:length])
        with pytest.raises(DocumentError, match="is damaged"):
            read_all(str(tmp_path))


def read_all(path: str) -> None:
    table = open_id_table(path)
    assert table is not None
    for number in range(ROWS):
        table.places(f"3/{number} é")


@dataclass(frozen=True, kw_only=True)
class WriteConfig:
    output_path: str


def write_all(config: WriteConfig) -> None:
    write_shards(config.output_path)


def test_a_step_of_many_shards_has_the_table_when_it_is_complete(tmp_path: Path) -> None:
    output = Output(name="documents/web", version="abc123", identity="0" * 64)
    path = str(tmp_path / output.relative())
    task = Task(
        output=output,
        prefix=str(tmp_path),
        path=path,
        fn=reference_to(write_all),
        finish=reference_to(merge_ids),
        config=encode(WriteConfig(output_path=path)),
    )
    assert run(task, Placement()).end is End.SUCCESS
    table = open_id_table(path)
    assert table is not None
    assert table.ids == SHARDS * ROWS

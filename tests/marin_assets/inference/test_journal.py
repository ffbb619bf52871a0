"""The answers of an unfinished shard are found again, but for what a kill or damage left of a part."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from marin_assets.inference.journal import FOLDER, Journal
from marin_resources.storage.files import names_in
from marin_resources.storage.paths import join

SHARD = "part-00000.jsonl.zst"


def saved(output: str, *places: int) -> None:
    journal = Journal(output, SHARD, save_every_s=3600)
    for place in places:
        journal.add({"place": place, "text": f"answer {place}, \u2028 \r\n é"})
    journal.save()


def test_what_was_saved_on_a_disk_or_in_a_bucket_is_found(any_prefix: str) -> None:
    saved(any_prefix, 0, 3)
    saved(any_prefix, 1)
    Journal(any_prefix, SHARD, save_every_s=3600).add({"place": 9, "text": "not saved"})
    found = Journal(any_prefix, SHARD, save_every_s=0.0)
    assert found.rows.keys() == {0, 1, 3}
    assert found.rows[3]["text"] == "answer 3, \u2028 \r\n é"
    found.remove()
    assert names_in(join(any_prefix, FOLDER, SHARD)) == []
    assert not Journal(any_prefix, SHARD, save_every_s=0.0).rows


def test_a_part_that_a_kill_left_half_written_is_none(tmp_path: Path) -> None:
    saved(str(tmp_path), 0)
    (tmp_path / FOLDER / SHARD / ".000001.jsonl.1a2b3c4d.tmp").write_bytes(b'{"place": 1, "te')
    assert Journal(str(tmp_path), SHARD, save_every_s=0.0).rows.keys() == {0}


@pytest.mark.parametrize("damage", [b'{"place": 0, "te', b'{"text": "whose?"}\n', b"[1]\n", b"\xff\x00"])
def test_a_damaged_part_costs_its_answers_and_says_so(
    damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    saved(str(tmp_path), 0)
    saved(str(tmp_path), 1)
    (tmp_path / FOLDER / SHARD / "000000.jsonl").write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        found = Journal(str(tmp_path), SHARD, save_every_s=0.0)
    assert found.rows.keys() == {1}
    assert "000000.jsonl' is damaged" in caplog.text
    saved(str(tmp_path), 0)
    assert Journal(str(tmp_path), SHARD, save_every_s=0.0).rows.keys() == {0, 1}

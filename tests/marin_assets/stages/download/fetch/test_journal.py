"""What a kill leaves of a batch is read to its last whole frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_assets.documents import write_rows
from marin_assets.stages.download.fetch.batches import Batches, restored, rows_in
from marin_assets.stages.download.fetch.journal import Journal, frames_in

FRAMES = [({"kind": "page", "n": number}, bytes([number]) * number * 7) for number in range(4)]


def journal_of(path: Path) -> bytes:
    journal = Journal(str(path))
    for row, records in FRAMES:
        journal.add(row, records)
    return path.read_bytes()


def test_a_journal_that_is_cut_anywhere_has_the_frames_before_the_cut(tmp_path: Path) -> None:
    whole = journal_of(tmp_path / "whole")
    assert list(frames_in(f"file://{tmp_path}/whole")) == FRAMES
    for size in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:size])
        frames = list(frames_in(str(tmp_path / "cut")))
        assert frames == FRAMES[: len(frames)]
        assert len(frames) < len(FRAMES)


def test_a_frame_with_a_flipped_bit_ends_the_journal(tmp_path: Path) -> None:
    whole = bytearray(journal_of(tmp_path / "whole"))
    whole[-1] ^= 1
    (tmp_path / "flipped").write_bytes(whole)
    assert list(frames_in(str(tmp_path / "flipped"))) == FRAMES[:-1]


def page(number: int, **more: object) -> dict[str, object]:
    return {"kind": "page", "key": f"0 a.example\t{number:016x}", "outcome": "fetched", "bytes": 5, **more}


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_what_is_in_no_batch_becomes_one_and_what_is_in_a_batch_is_not_twice(tmp_path: Path, scheme: str) -> None:
    folder = f"{scheme}{tmp_path}"
    batches = Batches(folder, 0, commit_s=3600.0)
    batches.add(page(1), b"first")
    batches.commit()
    batches.add(page(2), b"second")
    batches.add({"kind": "try", "key": "k", "tries": 2})
    batches.add({"kind": "host", "host": "a.example", "not_before": 9.0, "ended": "", "failures": 3})
    (tmp_path / "00000000.journal").write_bytes((tmp_path / "00000001.journal").read_bytes())  # of a written batch
    for _ in range(2):  # a second attempt finds what the first has made of it
        progress = restored(folder)
        assert progress.batches == (0, 1)
        assert (progress.fetched, progress.fetched_bytes, len(progress.done)) == (2, 10, 2)
        assert progress.tries == {"k": 2}
        assert progress.hosts["a.example"]["failures"] == 3
    rows = list(rows_in(folder, 1))
    assert [row["kind"] for row in rows] == ["page", "try", "host", "clock"]
    assert (tmp_path / "00000001.warc.gz").read_bytes() == b"second"
    assert not list(tmp_path.glob("*.journal"))


def test_a_batch_that_could_not_be_written_is_one_of_the_next_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(str(tmp_path), 0, commit_s=3600.0)
    batches.add(page(1), b"first")
    with monkeypatch.context() as patch:
        patch.setattr("marin_assets.stages.download.fetch.batches.write_rows", _full)
        with pytest.raises(OSError, match="full"):
            batches.commit()
    batches.add(page(2), b"second")
    batches.commit()
    assert restored(str(tmp_path)).batches == (0, 1)
    assert restored(str(tmp_path)).fetched == 2


def _full(*arguments: object, **named: object) -> None:
    raise OSError("the disk is full")


def test_an_outcome_ends_the_tries_of_its_address(tmp_path: Path) -> None:
    rows = [{"kind": "try", "key": page(1)["key"], "tries": 1}, page(1), {"kind": "try", "key": "http://a", "tries": 2}]
    write_rows(f"{tmp_path}/00000000.jsonl.zst", rows)
    assert restored(str(tmp_path)).tries == {"http://a": 2}

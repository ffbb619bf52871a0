"""A page of rows, the number of rows and the row of an id are what reading the whole file gives, for every format."""

from __future__ import annotations

import gzip
import json
import lzma
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import mirrors
import pytest
import zstandard
from bucket_for_tests import BucketForTests
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_assets.documents import (
    FORMATS,
    BadRow,
    DocumentError,
    PageError,
    count_rows,
    find_row,
    read_page,
    read_rows,
    rows,
    write_rows,
)
from marin_assets.documents.frames import index, writer
from marin_assets.documents.frames.index import open_indexed
from marin_assets.documents.parquet import write
from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.paths import join
from marin_resources.storage.transfer.account import charged_to

IDS = ["plain", "https://a.org/b?c=d&e=<f>", 'q"uo\\te', "ünïcödé", "\u2028", "", " ", "doc-7", "x" * 1000, "%2F#'"]


@pytest.fixture(autouse=True)
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames and groups of a few rows, so that small files have many of them."""
    monkeypatch.setattr(rows, "FRAME_BYTES", 2000)
    monkeypatch.setattr(rows, "FRAME_ROWS", 1)
    monkeypatch.setattr(writer, "MIN_ROW_BYTES", 1)
    monkeypatch.setattr(write, "ROW_GROUP_BYTES", 10_000)


def some_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    ids = [*IDS, *(f"doc-{n}" for n in range(count))][:count]
    return [{"id": id, "text": chance.randbytes(chance.randrange(300)).hex(), "n": n} for n, id in enumerate(ids)]


@pytest.mark.parametrize("format", FORMATS)
def test_pages_of_every_size_are_the_rows_that_reading_all_gives(any_prefix: str, format: str) -> None:
    path = join(any_prefix, f"a b=c/ü{format}")
    write_rows(path, some_rows(120))
    all_rows = [row for _, row in read_rows(path)]
    for start, count in [(0, 1), (0, 500), (7, 13), (119, 5), (120, 5), (60, 0)]:
        page = read_page(path, start=start, count=count)
        assert page.rows == all_rows[start : start + count]
        assert page.start == start
        assert page.skipped == (start > 0 and format in (".jsonl", ".jsonl.gz"))
    assert count_rows(path) == (120 if format in (".jsonl.zst", ".parquet") else None)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), count=st.integers(0, 60), frame_bytes=st.sampled_from([1, 200, 5000, 10**9]))
def test_a_page_of_frames_of_any_size_has_the_rows_of_its_place(
    data: st.DataObject, count: int, frame_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path, written = str(tmp_path_factory.mktemp("page") / "a.jsonl.zst"), some_rows(count, seed=count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "FRAME_BYTES", frame_bytes)
        patch.setattr(index, "RANGE_BYTES", data.draw(st.sampled_from([1, 2000, 10**9])))
        patch.setattr(index, "TAIL_BYTES", data.draw(st.sampled_from([9, 100, 10**6])))
        write_rows(path, written)
        start, size = data.draw(st.integers(0, count + 3)), data.draw(st.integers(0, count + 3))
        page = read_page(path, start=start, count=size)
        assert (page.rows, page.skipped) == (written[start : start + size], False)
        assert count_rows(path) == count


@pytest.mark.parametrize("format", [*FORMATS, ".jsonl.xz"])
def test_a_row_is_found_by_its_id_whatever_characters_it_has(tmp_path: Path, format: str) -> None:
    path, written = str(tmp_path / f"a{format}"), some_rows(40)
    if format == ".jsonl.xz":  # of a writer that escapes more than JSON requires
        lines = (json.dumps(row).replace("/", "\\/").replace("<", "\\u003c").replace("p", "\\u0070") for row in written)
        Path(path).write_bytes(lzma.compress("\n".join(lines).encode()))
    else:
        others = [{"id": "doc-7", "text": "again"}, {"id": None if format == ".parquet" else 5}, {"text": "none"}]
        write_rows(path, [*written, *others])
    for number, row in enumerate(written):
        expected = IDS.index("doc-7") if row["id"] == "doc-7" else number
        assert find_row(path, row["id"]) == expected, row["id"]
    for missing in ("doc", "doc-77", "lain", "PLAIN", "5", "none", "\ud800"):
        assert find_row(path, missing) is None


def test_ids_are_found_in_a_large_index_by_windows_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "WINDOW_IDS", 2)
    monkeypatch.setattr(index, "TAIL_BYTES", 9)
    path, written = str(tmp_path / "a.jsonl.zst"), [{"id": f"{n // 2}", "text": "x"} for n in range(400)]
    write_rows(path, written)
    assert [find_row(path, str(n)) for n in range(200)] == list(range(0, 400, 2))
    assert all(find_row(path, f"no-{n}") is None for n in range(200))


def test_blank_lines_bad_lines_and_byte_order_marks_have_the_places_that_reading_all_gives(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf{"id": "a"}\n\n \n{"id": 1\n[]\n{"id": "b"}\n{"id": "c"}'
    for name, data in {"a.jsonl": content, "b.jsonl.gz": gzip.compress(content)}.items():
        (tmp_path / name).write_bytes(data)
        all_rows = [row for _, row in read_rows(str(tmp_path / name))]
        page = read_page(str(tmp_path / name), start=1, count=3)
        assert page.rows == all_rows[1:4]
        assert isinstance(page.rows[0], BadRow)
        assert find_row(str(tmp_path / name), "b") == 3


def test_a_shard_of_one_frame_as_it_was_written_before_is_read_and_counts_as_skipped(tmp_path: Path) -> None:
    written = some_rows(50)
    path = tmp_path / "old.jsonl.zst"
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    with path.open("wb") as raw, compressor.stream_writer(raw, closefd=False) as out:
        for row in written:
            out.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    page = read_page(str(path), start=30, count=5)
    assert (page.rows, page.skipped) == (written[30:35], True)
    assert not read_page(str(path), start=0, count=5).skipped
    assert count_rows(str(path)) is None
    assert find_row(str(path), written[40]["id"]) == 40


def test_joined_shards_are_never_read_by_the_index_of_one_of_them(tmp_path: Path) -> None:
    first, second = some_rows(50), some_rows(60, seed=1)
    write_rows(str(tmp_path / "1.jsonl.zst"), first)
    write_rows(str(tmp_path / "2.jsonl.zst"), second)
    data = [(tmp_path / f"{n}.jsonl.zst").read_bytes() for n in (1, 2)]
    appended = zstandard.compress(b'{"id": "last"}\n')
    for content, joined in [
        (data[0] + data[1], first + second),
        (data[0] + data[0], first + first),
        (data[0] + appended, [*first, {"id": "last"}]),
    ]:
        (tmp_path / "a.jsonl.zst").write_bytes(content)
        page = read_page(str(tmp_path / "a.jsonl.zst"), start=48, count=20)
        assert (page.rows, page.skipped) == (joined[48:68], True)
        assert count_rows(str(tmp_path / "a.jsonl.zst")) is None
        assert find_row(str(tmp_path / "a.jsonl.zst"), joined[-1]["id"]) == joined.index(joined[-1])


def test_a_page_in_a_bucket_costs_two_ranges_and_a_look_at_its_size(gcs_bucket: BucketForTests) -> None:
    path, written = f"{gcs_bucket.prefix}/a.jsonl.zst", some_rows(3000)
    write_rows(path, written)
    before = len(gcs_bucket.requests())
    page = read_page(path, start=1500, count=10)
    requests = gcs_bucket.requests()[before:]
    assert page.rows == written[1500:1510]
    assert len([line for line in requests if "alt=media" in line or "/download/" in line]) == 2, requests
    assert len(requests) == 3, requests


def test_a_page_of_another_region_is_read_there_without_a_copy_of_the_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = mirrors.declare(mirrors.fresh("disk", tmp_path), monkeypatch)
    written = some_rows(10_000)
    write_rows(join(mirror.near, "x/a.jsonl.zst"), written)
    with charged_to(mirrors.account(mirror, 10**6)):
        assert read_page("mirror://x/a.jsonl.zst", start=9000, count=10).rows == written[9000:9010]
        assert find_row("mirror://x/a.jsonl.zst", written[5000]["id"]) == 5000
    assert mirror.files("here").keys().isdisjoint({"x/a.jsonl.zst"})


def test_a_file_that_is_replaced_between_the_requests_of_a_page_is_an_error_and_no_other_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "a.jsonl.zst")
    write_rows(path, some_rows(400))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "TAIL_BYTES", 9)
        shard = open_indexed(path)
        assert shard is not None
        write_rows(path, some_rows(400, seed=1))
        with pytest.raises(DocumentError, match=r"A frame of '.*a\.jsonl\.zst' .* replaced while it was read"):
            list(shard.lines(100, 5))


def test_every_damaged_byte_of_an_index_is_noticed_or_does_not_matter(tmp_path: Path) -> None:
    path, written = str(tmp_path / "a.jsonl.zst"), some_rows(30)
    write_rows(path, written)
    data, chance = read_bytes(path), random.Random(0)
    shard = open_indexed(path)
    assert shard is not None
    for place in range(shard.index.starts[-1], len(data)):
        write_bytes(path, data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :])
        for start in (0, 17, 29):
            with suppress(DocumentError):
                assert read_page(path, start=start, count=3).rows == written[start : start + 3]
    for length in range(shard.index.starts[-1] + 1, len(data), 7):
        write_bytes(path, data[:length])
        with pytest.raises(DocumentError, match="damaged or truncated"):
            read_page(path, start=0, count=100)


@pytest.mark.parametrize(("start", "count"), [(-1, 5), (0, -1), (True, 5), (0, 2.5), ("0", 5), (None, 5)])
def test_a_page_of_no_numbers_is_an_error(tmp_path: Path, start: Any, count: Any) -> None:
    write_rows(str(tmp_path / "a.jsonl"), some_rows(3))
    with pytest.raises(PageError, match=r"^(start|count) is .*, expected a whole number from 0\.$"):
        read_page(str(tmp_path / "a.jsonl"), start=start, count=count)


def test_a_missing_file_an_empty_file_and_another_kind_are_errors(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.jsonl.zst", "a.parquet"):
        with pytest.raises(FileNotFoundError):
            read_page(str(tmp_path / name), start=0, count=1)
    (tmp_path / "b.jsonl.zst").touch()
    (tmp_path / "c.jsonl.zst").write_bytes(b'{"id": "plain"}\n')
    (tmp_path / "d.parquet").write_bytes(b'{"id": "plain"}\n')
    for name in ("b.jsonl.zst", "c.jsonl.zst", "d.parquet"):
        with pytest.raises(DocumentError, match=r"damaged|plain text"):
            read_page(str(tmp_path / name), start=0, count=1)
    with pytest.raises(DocumentError, match="unknown format"):
        count_rows(str(tmp_path / "e.json"))
    with pytest.raises(PageError, match="expected a text"):
        find_row(str(tmp_path / "c.jsonl.zst"), 3)  # type: ignore[arg-type]

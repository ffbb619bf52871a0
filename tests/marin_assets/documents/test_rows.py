"""Rows go through every format unchanged, and the same rows are the same bytes."""

from __future__ import annotations

import gzip
import io
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_assets.documents import (
    FORMATS,
    BadRow,
    Document,
    DocumentError,
    document_shards,
    list_shards,
    read_documents,
    read_rows,
    write_documents,
    write_rows,
)
from marin_assets.documents.parquet import write
from marin_resources.storage.files import read_from, sizes_below, write_bytes
from marin_resources.storage.paths import join

TEXT = st.text() | st.sampled_from(
    ["\u2028\u2029\x85", "\0", "a\rb\r\nc\x0b", "\ufeffx", "\U0001f600" * 3, "x" * 400_000]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
DOCUMENT = st.builds(
    Document, id=TEXT, text=TEXT, source=st.text(), metadata=st.dictionaries(st.text(), JSON, max_size=3)
)


@settings(max_examples=60, deadline=None)
@given(documents=st.lists(DOCUMENT, max_size=5), format=st.sampled_from(FORMATS))
def test_documents_are_read_as_they_were_written_and_are_the_same_bytes_each_time(
    documents: list[Document], format: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / f"a{format}", Path(folder) / f"b{format}"
        assert write_documents(str(first), documents) == len(documents)
        write_documents(str(second), documents)
        assert list(read_documents(str(first))) == documents
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("format", FORMATS)
def test_documents_in_a_bucket_are_the_same_bytes_as_on_a_disk(any_prefix: str, tmp_path: Path, format: str) -> None:
    rows = [Document(id=f"{n}", text="\u2028ü" * n, metadata={"n": n}) for n in range(2000)]
    stored, local = join(any_prefix, f"a b=c,ü/{format}"), str(tmp_path / f"local{format}")
    for path in (stored, local):
        assert write_documents(path, rows, replace=False) == 2000
    assert list(read_documents(stored)) == rows
    assert read_from(stored, 0) == read_from(local, 0)
    write_documents(stored, rows[:1])
    assert list(read_documents(stored)) == rows[:1]


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_without_rows_has_no_rows(any_prefix: str, format: str) -> None:
    path = join(any_prefix, f"a{format}")
    assert write_rows(path, []) == 0
    assert list(read_rows(path)) == []


@pytest.mark.parametrize("format", FORMATS)
def test_columns_of_later_rows_are_kept(any_prefix: str, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "ROW_GROUP_BYTES", 1)
    rows: list[dict[str, Any]] = [
        {"id": "a", "n": None},
        {"id": "b", "n": 1, "new": "x"},
        {"id": "c", "n": 2.5, "metadata": {"k": 1}},
        {"id": "d", "n": 3, "metadata": {"other": []}, "new": None},
    ]
    path = join(any_prefix, f"a{format}")
    write_rows(path, rows)
    read = [row for _, row in read_rows(path)]
    assert [{k: v for k, v in row.items() if v is not None} for row in read if isinstance(row, dict)] == [
        {"id": "a"},
        {"id": "b", "n": 1, "new": "x"},
        {"id": "c", "n": 2.5, "metadata": '{"k": 1}' if format == ".parquet" else {"k": 1}},
        {"id": "d", "n": 3, "metadata": '{"other": []}' if format == ".parquet" else {"other": []}},
    ]
    if format == ".parquet":
        assert pq.ParquetFile(io.BytesIO(read_from(path, 0))).num_row_groups == 4


def test_columns_of_several_types_are_an_error_in_parquet(any_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for group_bytes in (1, 1000):
        monkeypatch.setattr(write, "ROW_GROUP_BYTES", group_bytes)
        with pytest.raises(DocumentError, match="cannot be written as parquet"):
            write_rows(join(any_prefix, "a.parquet"), [{"n": 1, "s": "x"}, {"n": "text", "s": "y"}])
    assert sizes_below(any_prefix) == {}


@pytest.mark.parametrize("value", ["\ud800", float("nan"), float("inf")])
def test_a_value_that_json_cannot_hold_is_an_error_with_the_row_and_leaves_no_file(
    any_prefix: str, value: object
) -> None:
    with pytest.raises(DocumentError, match=r"Row 2 of .*a\.jsonl.zst' cannot be written"):
        write_rows(join(any_prefix, "a.jsonl.zst"), [{"v": 1}, {"v": value}])
    assert sizes_below(any_prefix) == {}


@pytest.mark.parametrize("format", FORMATS)
def test_a_truncated_shard_in_a_bucket_is_reported_with_its_name(any_prefix: str, format: str) -> None:
    path = join(any_prefix, f"a{format}")
    write_rows(path, [{"id": str(n), "text": "x" * n} for n in range(500)])
    write_bytes(path, read_from(path, 0)[:-9])
    if format == ".jsonl":
        assert isinstance([row for _, row in read_rows(path)][-1], BadRow)
        return
    with pytest.raises(DocumentError, match=rf"a\{format}' is "):
        list(read_rows(path))


def test_gzip_members_and_zstd_frames_follow_each_other(tmp_path: Path) -> None:
    lines = [b'{"n": %d}\n' % n for n in range(50_000)]
    halves = b"".join(lines[:25_000]), b"".join(lines[25_000:])
    (tmp_path / "a.jsonl.gz").write_bytes(b"".join(map(gzip.compress, halves)))
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    frames = [zstandard.compress(half) for half in halves]
    (tmp_path / "b.jsonl.zst").write_bytes(skippable + frames[0] + skippable + zstandard.compress(b"") + frames[1])
    for name in ("a.jsonl.gz", "b.jsonl.zst"):
        rows = list(read_rows(str(tmp_path / name)))
        assert [number for number, _ in rows] == list(range(1, 50_001))
        assert [row["n"] for _, row in rows if isinstance(row, dict)] == list(range(50_000))


def test_blank_lines_are_not_rows_but_count_as_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\n{"n": 1}\r\n \n{"n": 2}')
    assert list(read_rows(str(tmp_path / "a.jsonl"))) == [(2, {"n": 1}), (4, {"n": 2})]


def test_shards_in_nested_folders_keep_their_names(any_prefix: str) -> None:
    folder = join(any_prefix, "in")
    for name in ("b.jsonl", "deep/er/a.parquet", "deep/b.jsonl.gz", ".marin/x.jsonl", "deep/.y.jsonl", "readme.txt"):
        if name.endswith(FORMATS):
            write_rows(join(folder, name), [{"id": name, "text": ""}])
    groups = document_shards(folder, "/out", None)
    assert [file.name for group in groups for file in group.inputs] == [
        "b.jsonl",
        "deep/b.jsonl.gz",
        "deep/er/a.parquet",
    ]
    assert [path for group in groups for path in group.outputs] == [
        "/out/b.jsonl.zst",
        "/out/deep/b.jsonl.zst",
        "/out/deep/er/a.jsonl.zst",
    ]
    assert [file.path for group in groups for file in group.inputs] == list_shards(folder)
    assert [path.rpartition("/")[2] for path in list_shards(folder)] == ["b.jsonl", "b.jsonl.gz", "a.parquet"]


def test_two_shards_that_differ_only_in_their_format_are_an_error(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.parquet"):
        write_rows(str(tmp_path / name), [{"id": "", "text": ""}])
    with pytest.raises(DocumentError, match=r"a\.jsonl' and .*a\.parquet' differ only in their format"):
        document_shards(str(tmp_path), "/out", None)
    (tmp_path / "other").mkdir()
    with pytest.raises(FileNotFoundError, match="No shard of documents"):
        document_shards(str(tmp_path / "other"), "/out", None)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"id": "a"}, r"no 'text' among \['id'\]"),
        ({"id": 3, "text": "x"}, "'id' is 3"),
        ({"id": "a", "text": ["x"]}, r"'text' is \['x'\]"),
        ({"id": "a", "text": None}, "'text' is None"),
        ({"id": "a", "text": "x", "source": 1}, "'source' is 1"),
        ({"id": "a", "text": "x", "metadata": [1]}, r"'metadata' is \[1\]"),
        ({"id": "a", "text": "x", "metadata": "{"}, "'metadata' is '{'"),
        ({"id": "a", "text": "x", "metadata": 0}, "'metadata' is 0"),
    ],
)
def test_a_row_that_is_not_a_document_is_reported_with_file_and_line(
    tmp_path: Path, row: dict[str, Any], found: str
) -> None:
    path = str(tmp_path / "a.jsonl")
    write_rows(path, [{"id": "ok", "text": ""}, row])
    with pytest.raises(DocumentError, match=rf"a\.jsonl' line 2 is not a document \({found}"):
        list(read_documents(path))


def test_a_row_that_is_nested_too_deeply_is_named(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(DocumentError, match=r"^Row 1 of '.*a\.jsonl', with the id x, is nested too deeply"):
        write_rows(str(tmp_path / "a.jsonl"), [{"id": "x", "text": "", "metadata": deep}])

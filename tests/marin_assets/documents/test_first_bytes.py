"""A file is read as what its name says, or refused with a sentence that says what it is."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import zstandard

from marin_assets.documents import DocumentError, read_rows
from marin_assets.documents.formats import READABLE
from marin_assets.stages.transform.ingest import IngestConfig, ingest
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.shard_error import ShardError
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

LINES = b"".join(b'{"id": "%d", "text": "\xc3\xa4 text of some words, %d"}\n' % (n, n * n) for n in range(5000))


def parquet(lines: bytes) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"text": lines.decode().splitlines()}), file)
    return file.getvalue()


def zip_archive(lines: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", lines)
    return file.getvalue()


def tar_archive(lines: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("a.jsonl")
        info.size = len(lines)
        archive.addfile(info, io.BytesIO(lines))
    return file.getvalue()


def arrow(lines: bytes) -> bytes:
    file, table = io.BytesIO(), pa.table({"text": lines.decode().splitlines()})
    with pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


FILES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "gzip": (gzip.compress, r"is a file compressed with gzip, .* ends with '\.jsonl\.gz'"),
    "zstd": (zstandard.compress, r"is a file compressed with zstd, .* ends with '\.jsonl\.zst'"),
    "bzip2": (bz2.compress, r"is a file compressed with bzip2, .* ends with '\.jsonl\.bz2'"),
    "xz": (lzma.compress, r"is a file compressed with xz, .* ends with '\.jsonl\.xz'"),
    "parquet": (parquet, r"is parquet, .* ends with '\.parquet'"),
    "plain": (bytes, r"is plain text, .* ends with '\.jsonl'"),
    "zip": (zip_archive, "is a zip archive, .* Convert it to lines of JSON"),
    "tar": (tar_archive, "is a tar archive, .* Convert it to lines of JSON"),
    "arrow": (arrow, "is an Arrow file, .* Convert it to lines of JSON"),
    "UTF-16": (lambda lines: lines.decode().encode("utf-16"), "is text in UTF-16 or UTF-32, .* Convert it to UTF-8"),
    "array": (lambda lines: b"[\n  " + b",\n".join(lines.splitlines()) + b"]", "is one JSON array, .* Convert it"),
    "LFS": (lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize 9\n", "is a pointer of Git LFS"),
    "HTML": (lambda _: b"\n<!DOCTYPE html>\n<html><body>Log in", "is an HTML page, .* Download it again"),
}
ITS_NAME = {
    "gzip": ".gz",
    "zstd": (".zst", ".zstd"),
    "bzip2": ".bz2",
    "xz": ".xz",
    "parquet": ".parquet",
    "plain": (".jsonl", ".ndjson"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_under_another_name_is_refused_with_what_it_is(kind: str, tmp_path: Path) -> None:
    make, sentence = FILES[kind]
    content = make(LINES)
    for ending in READABLE:
        path = tmp_path / f"a{ending}"
        path.write_bytes(content)
        if ending.endswith(ITS_NAME.get(kind, ())):
            assert sum(isinstance(row, dict) for _, row in read_rows(str(path))) == 5000
            continue
        with pytest.raises(DocumentError, match=sentence):
            list(read_rows(str(path)))


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind != "plain"])
def test_what_is_inside_a_compressed_file_is_known_too(kind: str, tmp_path: Path) -> None:
    """As gzip in gzip, which a server with Content-Encoding leaves."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(FILES[kind][0](LINES)))
    with pytest.raises(DocumentError, match=r"has, once decompressed, the content of .*, expected lines of text\."):
        list(read_rows(str(path)))


def test_documents_in_a_file_with_the_wrong_name_are_not_lost_as_a_few_bad_rows(any_prefix: str) -> None:
    folder = join(any_prefix, "raw")
    for i in range(4):
        write_bytes(join(folder, f"{i}.jsonl"), LINES)
    write_bytes(join(folder, "4.jsonl"), gzip.compress(LINES))
    config = IngestConfig(input_path=folder, output_path=join(any_prefix, "documents"), bad_rows="reject")
    with pytest.raises(ShardError, match=r"4\.jsonl' is a file compressed with gzip, expected lines of text by its"):
        ingest(unwrap_versioned_value(config))


@pytest.mark.parametrize("first", [b"", b"\n", b"[1]\n", b"null\n", b"\xef\xbb\xbf", b"PK\n", b"text\n"])
def test_lines_with_a_bad_first_row_are_still_lines(first: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(first + LINES)
    rows = [row for _, row in read_rows(str(tmp_path / "a.jsonl"))]
    assert sum(isinstance(row, dict) for row in rows) == 5000
    assert len(rows) - 5000 == bool(first.strip()) - first.startswith(b"\xef")

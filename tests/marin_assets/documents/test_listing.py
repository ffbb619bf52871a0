"""Every file below a folder of documents is read, or counted and named, or is an error; none is ignored in silence."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from marin_assets.documents import (
    Document,
    DocumentError,
    document_files,
    document_shards,
    list_shards,
    read_documents,
    read_rows,
)
from marin_assets.documents.attributes import KEPT, Decision, write_attributes
from marin_assets.stages.sample.count_documents import CountDocumentsConfig, count_documents
from marin_assets.stages.transform.ingest import IngestConfig, ingest
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.filesystems.disk_listing import SpecialFileError

LINES = b"".join(b'{"id": "%d", "text": "%s"}\n' % (n, b"word " * n) for n in range(300))
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
NAMES = [
    "a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.jsonl.bz2", "a.jsonl.xz",
    "a.ndjson", "a.ndjson.gz", "a.ndjson.zst", "a.ndjson.bz2", "a.ndjson.xz",
    "a.json.gz", "a.json.zst", "a.json.bz2", "a.json.xz", "A.JSONL", "A.Json.GZ",
]  # fmt: skip


def put(folder: Path, name: str, data: bytes = LINES) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    compressed = next((suffix for suffix in COMPRESS if suffix and name.lower().endswith(suffix)), "")
    path.write_bytes(COMPRESS[compressed](data))
    return str(path)


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_json_are_read_under_each_usual_name(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, name)
    assert list_shards(str(tmp_path)) == [path]
    assert [document.id for document in read_documents(path)] == [str(n) for n in range(300)]
    [shard] = document_shards(str(tmp_path), "/out", None)
    assert shard.outputs == (f"/out/{name[0]}.jsonl.zst",)


@pytest.mark.parametrize("name", ["a::b.jsonl", "a::b/c#1.jsonl", "100%25.jsonl", "[1]*{2}?.jsonl", "~a b.jsonl"])
def test_documents_with_odd_letters_in_their_names_are_read(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)
    [path] = list_shards(str(tmp_path))
    assert len(list(read_documents(path))) == 300
    assert count(tmp_path)["documents"] == 300


@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
def test_streams_of_bz2_and_xz_follow_each_other(tmp_path: Path, suffix: str) -> None:
    compress = COMPRESS[suffix]
    padding = b"\0" * 8 if suffix == ".xz" else b""
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(compress(LINES[:3000]) + padding + compress(b"") + compress(LINES[3000:]) + padding)
    assert len(list(read_rows(str(path)))) == 300


@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
@pytest.mark.parametrize("damage", ["cut", "cut at its end", "a wrong bit", "something after it", "empty"])
def test_a_damaged_bz2_or_xz_is_a_sentence(tmp_path: Path, suffix: str, damage: str) -> None:
    whole = COMPRESS[suffix](LINES)
    data = {
        "cut": whole[: len(whole) // 2],
        "cut at its end": whole[:-4],
        "a wrong bit": whole[:200] + bytes([whole[200] ^ 1]) + whole[201:],
        "something after it": whole + b"garbage",
        "empty": b"",
    }
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(data[damage])
    with pytest.raises(DocumentError, match=r"a\.jsonl\.\w+' is damaged or truncated after line \d+ \(.+\)\. Write or"):
        list(read_rows(str(path)))


@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
def test_a_bomb_of_bz2_or_xz_is_a_sentence(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(COMPRESS[suffix](b" " * 999_999 + b"\n") * 90)
    with pytest.raises(DocumentError, match="expands to more than 500 times its size"):
        list(read_rows(str(path)))


def count(folder: Path) -> dict[str, int | float]:
    config = CountDocumentsConfig(documents_path=str(folder), output_path=f"{folder}-counted")
    return count_documents(unwrap_versioned_value(config))


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A folder as other programs leave it: documents, and files beside them."""
    folder = tmp_path / "mixed"
    put(folder, "a.jsonl")
    put(folder, "deep/b.JSONL")
    for name in ("README.md", "_SUCCESS", "a.jsonl.crc", "deep/stats.json", "notes.txt", "part.csv", "z.jsonl.lz4"):
        put(folder, name, b"{}")
    (folder / ".hidden").mkdir()
    (folder / ".hidden/c.txt").touch()
    return folder


def test_files_beside_the_documents_are_counted_and_named(mixed: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    files = document_files(str(mixed))
    assert [file.name for file in files.shards] == ["a.jsonl", "deep/b.JSONL"]
    assert files.ignored == (
        "README.md", "_SUCCESS", "a.jsonl.crc", "deep/stats.json", "notes.txt", "part.csv", "z.jsonl.lz4",
    )  # fmt: skip
    assert f"7 files below {str(mixed)!r} are ignored" in caplog.text
    assert "'README.md', '_SUCCESS', 'a.jsonl.crc', 'deep/stats.json', 'notes.txt' and 2 more" in caplog.text


def keep_all(config: IngestConfig) -> Callable[[Document], Decision]:
    return lambda document: KEPT


def test_the_result_of_a_stage_counts_ignored_files(mixed: Path, tmp_path: Path) -> None:
    config = IngestConfig(input_path=str(mixed), output_path=str(tmp_path / "out"), bad_rows="reject")
    assert ingest(unwrap_versioned_value(config))["ignored_files"] == 7
    assert count(mixed)["ignored_files"] == 7
    decisions = write_attributes(str(mixed), str(tmp_path / "decisions"), keep_all, unwrap_versioned_value(config))
    assert decisions["ignored_files"] == 7
    assert "ignored_files" not in count(tmp_path / "out")


def test_a_folder_where_nothing_is_readable_is_one_sentence_with_what_is_there(mixed: Path) -> None:
    for path in list_shards(str(mixed)):
        os.remove(path)
    with pytest.raises(FileNotFoundError, match=r"No shard of documents exists below .*, only 'README\.md', .* and 2"):
        count(mixed)
    with pytest.raises(FileNotFoundError, match=r"below .*README\.md', only 'README.md'\. Expected names that end"):
        document_files(str(mixed / "README.md"))


def test_documents_in_symlinked_folders_are_read(mixed: Path, tmp_path: Path) -> None:
    put(tmp_path / "elsewhere", "er/c.jsonl")
    (mixed / "link").symlink_to(tmp_path / "elsewhere")
    assert [file.name for file in document_files(str(mixed)).shards] == ["a.jsonl", "deep/b.JSONL", "link/er/c.jsonl"]
    assert count(mixed)["documents"] == 900


@pytest.mark.timeout(10)
def test_a_fifo_among_the_documents_is_an_error_and_no_hang(mixed: Path) -> None:
    os.mkfifo(mixed / "pipe.jsonl")
    os.mkfifo(mixed / "pipe.parquet")
    with pytest.raises(SpecialFileError, match=r"pipe\.jsonl' is a FIFO, expected a file\. Move it out of the input"):
        count(mixed)
    for name in ("pipe.jsonl", "pipe.parquet"):
        with pytest.raises(SpecialFileError, match="is a FIFO"):
            list(read_rows(str(mixed / name)))

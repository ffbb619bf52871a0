"""Shards are many zstd frames and an index: the same bytes each time, little larger, and read by every reader."""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from marin_assets.documents import count_rows, find_row, read_page, read_rows, write_documents, write_rows
from marin_assets.documents.attributes import KEPT, write_decisions
from marin_assets.documents.document import Document
from marin_assets.documents.frames.index import open_indexed
from marin_assets.documents.frames.layout import ShardIndex
from marin_assets.documents.frames.writer import FRAME_BYTES
from marin_assets.documents.position import position
from marin_resources.storage.output.store import Store
from marin_resources.storage.output.verify import verify_output
from marin_resources.types.output import Output


def random_rows(count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    chance = random.Random(seed)
    return ({"id": f"doc-{n}", "text": chance.randbytes(1500).hex(), "n": n} for n in range(count))


def sources() -> list[Document]:
    """Parts of Python's own sources: text that repeats within frames and between them."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:60]
    texts = [(file.name, file.read_text(errors="replace")) for file in files]
    return [
        Document(id=f"{name}#{start}", text=text[start : start + 6000])
        for name, text in texts
        for start in range(0, len(text), 6000)
    ]


def index_of(path: Path) -> ShardIndex:
    indexed = open_indexed(str(path))
    assert indexed is not None
    return indexed.index


def in_one_frame(path: Path) -> bytes:
    """The rows of a shard as they were written before."""
    out = io.BytesIO()
    with zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(out, closefd=False) as stream:
        for _, row in read_rows(str(path)):
            stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return out.getvalue()


def test_two_writers_of_the_same_rows_write_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_rows(str(tmp_path / f"{name}.jsonl.zst"), random_rows(2000))
    assert (tmp_path / "a.jsonl.zst").read_bytes() == (tmp_path / "b.jsonl.zst").read_bytes()


def test_frames_are_of_whole_rows_and_a_mebibyte_and_the_index_has_12_bytes_an_id(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    write_rows(str(path), random_rows(2000))
    index, data = index_of(path), path.read_bytes()
    assert (index.rows, index.ids, len(index.sizes)) == (2000, 2000, 6)
    rows = list(random_rows(2000))
    for frame in index.frames_of(0, 2000):
        content = zstandard.ZstdDecompressor().decompressobj().decompress(data[frame.start : frame.end])
        assert [json.loads(line) for line in content.splitlines()] == rows[frame.first_row :][: frame.rows]
        assert frame.raw_bytes == len(content)
        assert frame.first_row + frame.rows == 2000 or FRAME_BYTES <= len(content) < FRAME_BYTES + 4000
    records = data[index.ids_start : index.ids_start + 12 * 2000]
    by_position = sorted((position(str(row["id"])), n) for n, row in enumerate(rows))
    assert records == b"".join(place.to_bytes(8, "big") + n.to_bytes(4, "big") for place, n in by_position)


def test_frames_of_large_rows_are_of_64_rows_and_4_mebibytes_at_most(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    for size, rows_of_a_frame in [(30_000, 64), (200_000, 21)]:
        write_rows(str(path), ({"id": str(n), "text": "x" * size} for n in range(100)))
        assert index_of(path).frames_of(0, 1)[0].rows == rows_of_a_frame


def test_documents_with_their_attributes_take_at_most_5_percent_more_than_in_one_frame(tmp_path: Path) -> None:
    documents = sources()
    write_documents(str(tmp_path / "documents.jsonl.zst"), documents)
    for name in ("language", "quality", "duplicates"):
        decisions = ((document.id, KEPT) for document in documents)
        write_decisions(str(tmp_path / f"{name}.jsonl.zst"), decisions, Counter())
    files = sorted(tmp_path.glob("*.zst"))
    assert index_of(tmp_path / "documents.jsonl.zst").ids == len(documents)
    assert index_of(tmp_path / "quality.jsonl.zst").ids == 0, "an id would be a third of its row"
    assert sum(file.stat().st_size for file in files) <= 1.05 * sum(len(in_one_frame(file)) for file in files)


def test_rows_without_ids_or_with_small_rows_are_found_by_a_search(tmp_path: Path) -> None:
    rows = [*({"n": n} for n in range(50)), {"id": 7}, {"id": "7", "text": "x"}, {"id": "7", "text": "y"}]
    write_rows(str(tmp_path / "a.jsonl.zst"), rows)
    assert index_of(tmp_path / "a.jsonl.zst").ids == 0
    assert (find_row(str(tmp_path / "a.jsonl.zst"), "7"), find_row(str(tmp_path / "a.jsonl.zst"), "8")) == (51, None)


def test_rows_of_any_size_are_written_and_read(tmp_path: Path) -> None:
    sizes = [0, 3, FRAME_BYTES - 40, FRAME_BYTES, 5 * FRAME_BYTES, 1, 0]
    rows = [{"id": str(n), "text": "ü" * (size // 2)} for n, size in enumerate(sizes)]
    write_rows(str(tmp_path / "a.jsonl.zst"), rows)
    assert [row for _, row in read_rows(str(tmp_path / "a.jsonl.zst"))] == rows
    for n in range(len(rows)):
        assert read_page(str(tmp_path / "a.jsonl.zst"), start=n, count=2).rows == rows[n : n + 2]


@pytest.mark.parametrize("format", [".jsonl", ".jsonl.gz"])
def test_other_formats_have_the_bytes_that_they_had(tmp_path: Path, format: str) -> None:
    rows = [*random_rows(900), {"id": "large", "text": "x" * 3_000_000}, {"id": "last"}]
    write_rows(str(tmp_path / f"a{format}"), rows)
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) if format == ".jsonl.gz" else out as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        expected = out.getvalue() if stream is out else b""
    assert (tmp_path / f"a{format}").read_bytes() == (expected or out.getvalue())


def _lines(lines: Any) -> list[str]:
    return [json.loads(line)["id"] for line in lines]


def _copied(path: str) -> list[str]:
    out = io.BytesIO()
    with open(path, "rb") as file:
        zstandard.ZstdDecompressor().copy_stream(file, out)
    return _lines(out.getvalue().splitlines())


def _streamed(path: str) -> list[str]:
    with open(path, "rb") as file:
        return _lines(io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding="utf-8"))


def _opened(path: str) -> list[str]:
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        return _lines(file)


def _by_fsspec(path: str) -> list[str]:
    import fsspec

    with fsspec.open(path, "rt", compression="infer") as file:
        return _lines(file)


def _by_the_command(path: str) -> list[str]:
    if shutil.which("zstd") is None:
        pytest.skip("the command zstd is not installed")
    return _lines(subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout.splitlines())


def _by_pyarrow(path: str) -> list[str]:
    import pyarrow as pa
    import pyarrow.json

    with pa.input_stream(path, compression="zstd") as file:
        ids: list[str] = pyarrow.json.read_json(file)["id"].to_pylist()
    return ids


def _by_pandas(path: str) -> list[str]:
    import pandas as pd

    ids: list[str] = pd.read_json(path, lines=True)["id"].tolist()
    return ids


def _by_duckdb(path: str) -> list[str]:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        rows = connection.execute("select id from read_json(?, format='newline_delimited')", [path]).fetchall()
    return [id for (id,) in rows]


def _by_zephyr(path: str) -> list[str]:
    readers = pytest.importorskip("zephyr.readers")
    return [row["id"] for row in readers.load_jsonl(path)]


READERS: dict[str, Callable[[str], list[str]]] = {
    "zstandard.open": _opened,
    "stream_reader": _streamed,
    "copy_stream": _copied,
    "fsspec": _by_fsspec,
    "zstd -dc": _by_the_command,
    "pyarrow": _by_pyarrow,
    "pandas": _by_pandas,
    "duckdb": _by_duckdb,
    "zephyr": _by_zephyr,
}


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A shard of six frames, with an index of ids."""
    path = str(tmp_path_factory.mktemp("shard") / "a.jsonl.zst")
    write_rows(path, random_rows(2000))
    return path


@pytest.mark.parametrize(
    "reader", [pytest.param(name, marks=pytest.mark.long) if name == "zephyr" else name for name in READERS]
)
def test_other_programs_read_all_rows(shard: str, reader: str) -> None:
    assert READERS[reader](shard) == [f"doc-{n}" for n in range(2000)]


@pytest.mark.long
def test_datasets_and_levanter_read_all_rows(shard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("levanter")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    script = f"""
import datasets, json
from levanter.data.sharded_datasource import TextUrlDataSource
source = TextUrlDataSource([{shard!r}], text_key="id")
ids = [list(source.open_shard(source.shard_names[0]))]
for streaming in (False, True):
    rows = datasets.load_dataset(
        "json", data_files={shard!r}, split="train", streaming=streaming, cache_dir={str(tmp_path)!r}
    )
    ids.append([row["id"] for row in rows])
print(json.dumps(ids))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [[f"doc-{n}" for n in range(2000)]] * 3


def test_a_reader_of_one_frame_in_one_call_fails_instead_of_returning_the_first_mebibyte(shard: str) -> None:
    with pytest.raises(zstandard.ZstdError, match="could not determine content size"):
        zstandard.decompress(Path(shard).read_bytes())


def test_verification_finds_a_changed_byte_of_the_index(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    claim = store.claim(Output(name="x", version="1", identity="i"), attempt=1, resumable=False, run_id=None)
    path = Path(claim.path, "a.jsonl.zst")
    write_rows(str(path), random_rows(300))
    store.publish(claim, {}, {})
    assert verify_output(claim.path).ok
    data, index = path.read_bytes(), index_of(path)
    for place in (index.ids_start, index.ids_start + 12 * 300, len(data) - 1):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert [(f.problem.value, f.name) for f in verify_output(claim.path).findings] == [("corrupted", "a.jsonl.zst")]


WRITER = """
import random, sys
from marin_assets.documents import write_rows
n = 0
while True:
    seed = n % 2
    chance = random.Random(seed)
    rows = ({"id": f"{seed}-{i}", "text": chance.randbytes(1500).hex()} for i in range(1500 + seed * 700))
    write_rows(sys.argv[1], rows)
    n += 1
    print(n, flush=True)
"""


@pytest.mark.long
def test_a_writer_that_is_killed_at_any_moment_leaves_rows_with_their_own_index(tmp_path: Path) -> None:
    path, chance = tmp_path / "a.jsonl.zst", random.Random(0)
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.random() / 5)  # anywhere in one of the next writes
        process.kill()
        process.wait()
        process.stdout.close()
        rows = [row for _, row in read_rows(str(path)) if isinstance(row, dict)]
        assert count_rows(str(path)) == len(rows) in (1500, 2200)
        assert read_page(str(path), start=len(rows) - 5, count=9).rows == rows[-5:]
        assert [find_row(str(path), rows[n]["id"]) for n in (0, 777, -1)] == [0, 777, len(rows) - 1]
        assert find_row(str(path), "1-0" if len(rows) == 1500 else "0-0") is None
    assert [file.name for file in tmp_path.iterdir() if not file.name.startswith(".")] == ["a.jsonl.zst"]

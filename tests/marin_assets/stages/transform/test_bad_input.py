"""Damaged, truncated, huge or hostile input ends in a sentence with file and line, or in a counted rejection.

It is never lost silently, never hangs the stage, and never exhausts the memory.
"""

from __future__ import annotations

import gzip
import json
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from marin_assets.documents import BadRow, Document, DocumentError, read_documents, read_rows, write_documents
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.stages.transform.ingest import IngestConfig, ingest
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError

MB = 1024**2
RANDOM = random.Random(7)
LINES = [json.dumps({"id": str(i), "text": RANDOM.randbytes(300).hex()}).encode() + b"\n" for i in range(1000)]
DATA = b"".join(LINES)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def put(folder: Path, name: str, data: bytes) -> str:
    path = folder / "raw" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return str(path)


def zstd_blocks(frame: bytes) -> list[int]:
    """Return the end offsets of the blocks of a zstd frame without checksum and dictionary (RFC 8878, 3.1.1)."""
    descriptor = frame[4]
    assert not descriptor & 0b111, "no checksum, no dictionary"
    single_segment, size_flag = descriptor >> 5 & 1, descriptor >> 6
    at = 5 + (not single_segment) + {0: single_segment, 1: 2, 2: 4, 3: 8}[size_flag]
    ends, last = [], False
    while not last:
        header = int.from_bytes(frame[at : at + 3], "little")
        last = bool(header & 1)
        at += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
        ends.append(at)
    assert ends[-1] == len(frame)
    return ends


ZSTD, GZIP = zstandard.compress(DATA), gzip.compress(DATA, mtime=0)
BORDER = zstd_blocks(ZSTD)[1]
WITH_CHECKSUM = zstandard.ZstdCompressor(write_checksum=True).compress(DATA)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGED = {
    "gzip cut in the middle": ("a.jsonl.gz", GZIP[: len(GZIP) // 2]),
    "gzip cut in its last bytes": ("a.jsonl.gz", GZIP[:-4]),
    "gzip with a wrong CRC": ("a.jsonl.gz", flipped(GZIP, len(GZIP) - 8)),
    "gzip with a wrong bit": ("a.jsonl.gz", flipped(GZIP, len(GZIP) // 2)),
    "gzip with something after it": ("a.jsonl.gz", GZIP + b"garbage"),
    "gzip of no bytes": ("a.jsonl.gz", b""),
    "zstd cut in a block": ("a.jsonl.zst", ZSTD[: BORDER - 7]),
    "zstd cut at a block's border": ("a.jsonl.zst", ZSTD[:BORDER]),
    "zstd cut in its header": ("a.jsonl.zst", ZSTD[:3]),
    "zstd cut before its checksum": ("a.jsonl.zst", WITH_CHECKSUM[:-4]),
    "zstd with a wrong checksum": ("a.jsonl.zst", flipped(WITH_CHECKSUM, len(WITH_CHECKSUM) - 1)),
    "zstd with something after it": ("a.jsonl.zst", ZSTD + b"garbage"),
    "zstd of no bytes": ("a.jsonl.zst", b""),
    "zstd whose second frame is cut": ("a.jsonl.zst", ZSTD + ZSTD[:BORDER]),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file_is_a_sentence_and_fails_ingest(tmp_path: Path, case: str) -> None:
    path = put(tmp_path, *DAMAGED[case])
    with pytest.raises(
        DocumentError, match=r"a\.jsonl\.\w+' is damaged or truncated after line \d+ \(.+\)\. Write or download"
    ):
        list(read_rows(path))
    config = IngestConfig(
        input_path=str(tmp_path / "raw"), output_path=str(tmp_path / "out"), bad_rows="reject", max_bad_fraction=1.0
    )
    with pytest.raises(ShardError, match="is damaged or truncated"):
        ingest(unwrap_versioned_value(config))
    assert not list((tmp_path / "out").glob("*.zst"))


def parquet(folder: Path, **changes: object) -> bytes:
    table = pa.table({"id": [str(i) for i in range(1000)], "text": [line.decode() for line in LINES]})
    pq.write_table(table, folder / "a.parquet", row_group_size=100, write_page_checksum=True)
    return (folder / "a.parquet").read_bytes()


@pytest.mark.parametrize("end", [0, 3, 1000, -4, -1])
def test_a_truncated_parquet_is_a_sentence(tmp_path: Path, end: int) -> None:
    path = put(tmp_path, "b.parquet", parquet(tmp_path)[:end])
    with pytest.raises(DocumentError, match=r"b\.parquet' is not valid parquet after row 0"):
        list(read_rows(path))


def test_a_parquet_with_a_damaged_page_is_a_sentence_with_the_row(tmp_path: Path) -> None:
    data = parquet(tmp_path)
    path = put(tmp_path, "b.parquet", flipped(data, len(data) // 2))
    with pytest.raises(DocumentError, match=r"b\.parquet' is not valid parquet after row \d+"):
        list(read_rows(path))


@pytest.mark.parametrize("writer", ["another program", "write_documents"])
def test_a_changed_letter_in_a_page_of_parquet_is_found(tmp_path: Path, writer: str) -> None:
    """It decompresses: without page checksums the text would be read with another letter."""
    text = "the only place of these words"
    if writer == "write_documents":
        write_documents(str(tmp_path / "a.parquet"), [Document(id="a", text=text)])
    else:
        table = pa.table({"id": ["a"], "text": [text]})
        pq.write_table(table, tmp_path / "a.parquet", compression="none", write_page_checksum=True)
    data = (tmp_path / "a.parquet").read_bytes()
    path = put(tmp_path, "b.parquet", flipped(data, data.index(text.encode()) + 4))
    with pytest.raises(DocumentError, match=r"b\.parquet' is not valid parquet after row 0 .*CRC"):
        list(read_rows(path))


def test_invalid_utf8_in_parquet_is_a_bad_row(tmp_path: Path) -> None:
    texts = pa.array([b"good", b"\xff\xfe", b"good"]).view(pa.string())
    pq.write_table(pa.table({"id": ["a", "b", "c"], "text": texts}), tmp_path / "a.parquet")
    rows = [row for _, row in read_rows(str(tmp_path / "a.parquet"))]
    assert [row.reason if isinstance(row, BadRow) else row["text"] for row in rows] == ["good", "invalid_utf8", "good"]


def test_a_missing_column_is_reported_with_the_existing_ones(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "body": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(DocumentError, match=r"has no column 'text', only 'id', 'body'\. Name one of these"):
        list(read_rows(str(tmp_path / "a.parquet"), columns=["text"]))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "\xc3"}', "invalid_utf8"),
        (b'{"text": "\\ud83d"}', "invalid_utf8"),
        (b'{"text": "\\ude00\\ud83d"}', "invalid_utf8"),
        (b'{"text": "x"', "invalid_json"),
        (b"\0" * 4096, "invalid_json"),
        (b"[" * 1_000_000, "invalid_json"),
        (b'{"n": ' + b"1" * 5000 + b"}", "invalid_json"),
        (b"null", "not_an_object"),
    ],
)
def test_a_line_that_is_not_a_row_is_reported_with_its_reason(tmp_path: Path, line: bytes, reason: str) -> None:
    path = put(tmp_path, "a.jsonl", LINES[0] + line + b"\n" + LINES[1])
    (_, first), (number, bad), (_, second) = read_rows(path)
    assert (number, first, second) == (2, json.loads(LINES[0]), json.loads(LINES[1]))
    assert isinstance(bad, BadRow)
    assert bad.reason == reason
    with pytest.raises(DocumentError, match=rf"a\.jsonl' line 2 is not a document \({reason}: "):
        list(read_documents(path))


def test_whole_surrogate_pairs_are_text(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", b'{"id": "a", "text": "\\ud83d\\ude00"}')
    assert [d.text for d in read_documents(path)] == ["\U0001f600"]


def bomb(path: Path, kind: str) -> None:
    """Write a file of a few MB that decompresses to between 200 MB of one line and 100 GB."""
    if kind == "long.jsonl":
        with path.open("wb") as out:
            for piece in (LINES[0], b'{"id": "b", "text": "', *[b"y" * MB] * 200, b'"}\n', LINES[1]):
                out.write(piece)
    elif kind == "long.jsonl.zst":
        noise = RANDOM.randbytes(35 * MB).hex().encode()
        path.write_bytes(zstandard.compress(LINES[0] + noise * 3 + b"\n" + LINES[1]))
    elif kind.endswith(".gz"):
        # one deflate block, repeated: 1 kB expands to 1 MB of zeros
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        zeros = deflate.compress(b"\n" if "lines" in kind else b"\0" * 100 * MB) + deflate.flush(zlib.Z_FULL_FLUSH)
        path.write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + zeros * 20)
    elif kind.endswith(".zst"):
        block = struct.pack("<I", 0b10 | (128 * 1024) << 3)[:3] + b"a"  # 128 kB of one character in 4 bytes
        path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x58" + block * 800_000)
    elif kind == "pages.parquet":
        table = pa.table({"id": ["a"] * 30, "text": ["x" * 10_000_000] * 30})
        pq.write_table(table, path, use_dictionary=False, compression="zstd")
    else:
        text = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), ["x" * 5_000_000])
        pq.write_table(pa.table({"id": ["a"] * 100_000, "text": text}), path)


READ = """
import json, re, sys, time
from pathlib import Path
import numpy, pyarrow.parquet, zstandard
from marin_assets.documents import BadRow, DocumentError, read_rows
# ru_maxrss is inherited from the process that started this one
megabytes = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
before, started, message, reasons = megabytes(), time.monotonic(), "", []
try:
    for _, row in read_rows(sys.argv[1]):
        reasons.append(row.reason if isinstance(row, BadRow) else "")
except DocumentError as error:
    message = str(error)
print(json.dumps([megabytes() - before, time.monotonic() - started, len(reasons), [r for r in reasons if r], message]))
"""


def read_elsewhere(path: Path) -> tuple[int, float, int, list[str], str]:
    """Read in another process. Return peak memory above the start (MB), seconds, rows, reasons of bad rows, error."""
    command = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    megabytes, seconds, rows, reasons, message = json.loads(done.stdout)
    print(f"{path.name}: {megabytes} MB, {seconds:.2f} s")
    return megabytes, seconds, rows, reasons, message


@pytest.mark.parametrize(
    "kind",
    [
        "long.jsonl",
        "bomb.jsonl.gz",
        "dictionary.parquet",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in ("long.jsonl.zst", "bomb.jsonl.zst", "pages.parquet")),
    ],
)
def test_a_huge_line_and_a_bomb_take_seconds_and_little_memory(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    bomb(path, kind)
    megabytes, seconds, rows, reasons, message = read_elsewhere(path)
    path.unlink()
    assert megabytes < 250
    assert seconds < 10
    if kind.startswith("long"):
        assert (rows, reasons, message) == (3, ["too_long"], "")
    else:
        assert "expands to more than 500 times its size" in message


@pytest.mark.long
def test_a_parquet_of_one_large_row_group_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = [RANDOM.randbytes(1000).hex() for _ in range(60_000)]
    pq.write_table(pa.table({"id": texts, "text": texts}), path, row_group_size=10**9, use_dictionary=False)
    megabytes, *_ = read_elsewhere(path)
    assert path.stat().st_size > 200 * MB
    assert megabytes < 100


def hostile_pages() -> dict[str, tuple[str, str | None]]:
    """Name -> a page, and the reason why it is rejected. Together they have 100 MB."""
    return {
        "nested <div>": ("<div>" * 1_000_000 + "x" + "</div>" * 1_000_000, "too_long"),
        "nested <b>": ("<b>" * 1_000_000 + "x" + "</b>" * 1_000_000, "too_deep"),
        "nested <ul>": ("<ul>" * 1_000_000 + "x" + "</ul>" * 1_000_000, "too_deep"),
        "unclosed <div>": ("<div>" * 1_000_000 + "word " * 30, None),
        "unclosed <b>": ("<b>x" * 1_000_000, "too_deep"),
        "unclosed <p>": ("<p>x " * 1_000_000, None),
        "unclosed <li>": ("<ul>" + "<li>x" * 200_000, None),
        "unclosed <b> in paragraphs": ("".join(f"<p><b id={i}>x" for i in range(20_000)), "too_deep"),
        "deep list with many items": ("<ul>" * 500 + "<li>x" * 100_000, "too_deep"),
        "end tags that close nothing": ("<ul></b>" * 1000, "too_deep"),
        "attributes": ("<div " + " ".join(f"a{i}" for i in range(1_000_000)) + ">", "too_many_attributes"),
        "50 MB": ("<p>word word word</p>\n" * 2_500_000, "too_long"),
        "blanks": ("<pre>" + " " * 1_000_000 + "x</pre>" + "&nbsp;" * 300_000 + "y", None),
        "one long line": ("<p>" + "word " * 1_900_000, None),
        "short lines": ("<pre>" + "word\n" * 1_900_000, None),
        "less than": ("<" * 300_000 + "&" * 300_000 + "word " * 50, None),
    }


@pytest.mark.long
@pytest.mark.timeout(60)
def test_hostile_pages_are_counted_and_do_not_hang(tmp_path: Path) -> None:
    for name, (page, reason) in hostile_pages().items():
        pages = [Document(id="hostile", text=page), Document(id="good", text="<p>" + "word " * 50)]
        write_documents(str(tmp_path / name / "pages/a.jsonl.zst"), pages)
        config = HtmlToMarkdownConfig(
            pages_path=str(tmp_path / name / "pages"), output_path=str(tmp_path / name / "documents")
        )
        result = html_to_markdown(unwrap_versioned_value(config))
        rejected = {key: count for key, count in result.items() if key.startswith("rejected_") and count}
        assert rejected == ({f"rejected_{reason}": 1} if reason else {}), name
        assert result["pages_kept"] == (1 if reason else 2), name
        assert result["pages_unaccounted"] == 0

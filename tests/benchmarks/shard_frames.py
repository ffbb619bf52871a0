"""Shards in frames with an index against shards of one frame, as they were before: writing, size, pages, requests.

    python tests/benchmarks/shard_frames.py [DOCUMENTS]

The documents are 6,000 characters of this machine's Python sources each, and 900 random ones; beside them five files of
attributes. CPU time of this process, round by round; the least counts, as other work only adds to it.

    write           CPU of documents, and of attributes, in frames: at most 1.03 times that of one frame
    size            documents and attributes in frames: at most 1.05 times their size in one frame
    last page       CPU of the last 100 rows: at most 3 times that of the first 100 rows; also as a part of one frame's
    find            CPU of an id near the end, printed beside that of a search without an index
    in a bucket     requests of the last page: a look at the size and 2 ranges, with at most 1 MB; printed: of one frame

Limits are missed with an exit code of 1. Takes two minutes with 20,000 documents.
"""

from __future__ import annotations

import random
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import object_stores
import zstandard
from gcsfs import GCSFileSystem

from marin_assets.documents import count_rows, find_row, read_page, write_rows
from marin_assets.documents.rows import ENCODER
from marin_resources.storage.files import open_atomic, read_bytes, write_bytes

DOCUMENTS = 20_000
ATTRIBUTES = 5
PAGE = 100
ROUNDS = 5
CHARACTERS, NOISE = 6000, 900
WRITE, SIZE, LAST_PAGE, PAGE_BYTES, REQUESTS = 1.03, 1.05, 3.0, 1_000_000, 3

Rows = list[dict[str, Any]]


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTS
    rows = {"documents": documents(count), "attributes": attributes(count)}
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        sizes = {name: compare_writers(missed, folder, name, of_name) for name, of_name in rows.items()}
        before, after = (sizes["documents"][i] + ATTRIBUTES * sizes["attributes"][i] for i in (0, 1))
        compare(missed, "size of all", after / before, SIZE)
        one, frames = f"{folder}/documents-one.jsonl.zst", f"{folder}/documents-frames.jsonl.zst"
        compare_pages(missed, one, frames, rows["documents"])
        compare_requests(missed, one, frames, rows["documents"])
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def compare_writers(missed: list[str], folder: str, name: str, rows: Rows) -> tuple[int, int]:
    """The bytes in one frame and in frames."""
    one, frames = f"{folder}/{name}-one.jsonl.zst", f"{folder}/{name}-frames.jsonl.zst"
    cpu_s = timed(one=lambda: write_one_frame(one, rows), frames=lambda: write_rows(frames, rows))
    compare(missed, f"write {name}", cpu_s["frames"] / cpu_s["one"], WRITE)
    sizes = Path(one).stat().st_size, Path(frames).stat().st_size
    print(f"{name} take {sizes[1]:,} bytes, {sizes[0]:,} in one frame")
    return sizes


def compare_pages(missed: list[str], one: str, frames: str, rows: Rows) -> None:
    last, id = len(rows) - PAGE, rows[-50]["id"]
    assert count_rows(frames) == len(rows)
    cpu_s = timed(
        first=lambda: require(read_page(frames, start=0, count=PAGE).rows, rows[:PAGE]),
        last=lambda: require(read_page(frames, start=last, count=PAGE).rows, rows[last:]),
        last_of_one=lambda: require(read_page(one, start=last, count=PAGE).rows, rows[last:]),
        find=lambda: require(find_row(frames, id), len(rows) - 50),
        find_in_one=lambda: require(find_row(one, id), len(rows) - 50),
    )
    print(", ".join(f"{name} {1000 * seconds:.1f} ms" for name, seconds in cpu_s.items()))
    compare(missed, "last page against first", cpu_s["last"] / cpu_s["first"], LAST_PAGE)
    print(f"last page of one frame   {cpu_s['last_of_one'] / cpu_s['last']:.0f} times that of frames")


def compare_requests(missed: list[str], one: str, frames: str, rows: Rows) -> None:
    last = len(rows) - PAGE
    for name, path in (("one", one), ("frames", frames)):
        stored = f"{object_stores.gcs_prefix()}/a.jsonl.zst"
        write_bytes(stored, read_bytes(path))
        for page, start in (("first", 0), ("last", last)):
            with counted_responses() as sizes:
                require(read_page(stored, start=start, count=PAGE).rows, rows[start : start + PAGE])
            print(f"{page} page of {name:7} in a bucket: {len(sizes)} requests, {sum(sizes):,} bytes")
            if name == "frames":
                compare(missed, f"requests of the {page} page", len(sizes), REQUESTS)
                compare(missed, f"bytes of the {page} page", sum(sizes), PAGE_BYTES)


class counted_responses:
    """The bytes of each response of a bucket in the block."""

    def __enter__(self) -> list[int]:
        sizes: list[int] = []
        request = GCSFileSystem._request

        async def counted(self: GCSFileSystem, *arguments: Any, **options: Any) -> Any:
            response = await request(self, *arguments, **options)
            sizes.append(len(response[3]))
            return response

        self._patch = patch.object(GCSFileSystem, "_request", counted)
        self._patch.start()
        return sizes

    def __exit__(self, *_: object) -> None:
        self._patch.stop()


def timed(**work: Callable[[], object]) -> dict[str, float]:
    """The least CPU seconds of each, of rounds in which they take turns."""
    least = dict.fromkeys(work, float("inf"))
    for _ in range(ROUNDS):
        for name, do in work.items():
            began = time.process_time()
            do()
            least[name] = min(least[name], time.process_time() - began)
    return least


def compare(missed: list[str], name: str, value: float, limit: float) -> None:
    print(f"{name:28} {value:,.3f} (limit {limit:,})")
    if value > limit:
        missed.append(name)


def require(actual: object, expected: object) -> None:
    if actual != expected:
        raise AssertionError(f"read {actual!r:.200}, expected {expected!r:.200}")


def write_one_frame(path: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """The writer of shards before there were frames."""
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    with open_atomic(path) as raw, compressor.stream_writer(raw, closefd=False) as out:
        for row in rows:
            out.write(ENCODER.encode(row).encode() + b"\n")


def documents(count: int) -> Rows:
    chance = random.Random(0)
    texts = list(sources())
    chance.shuffle(texts)
    return [
        {
            "id": f"<urn:uuid:{chance.getrandbits(128):032x}>",
            "text": texts[n % len(texts)] + chance.randbytes(NOISE).decode("latin-1"),
            "source": "python",
            "metadata": {"url": f"https://example.com/{n}"},
        }
        for n in range(count)
    ]


def attributes(count: int) -> Rows:
    chance = random.Random(0)
    ids = (f"<urn:uuid:{chance.getrandbits(128):032x}>" for _ in range(count))
    return [{"id": id, "keep": True, "reason": "", "value": float(chance.randrange(1000))} for id in ids]


def sources() -> Iterator[str]:
    for root in (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")):
        for file in sorted(Path(root).rglob("*.py"))[:4000]:
            text = file.read_text(errors="replace")
            yield from (text[start : start + CHARACTERS] for start in range(0, len(text), CHARACTERS))


if __name__ == "__main__":
    raise SystemExit(main())

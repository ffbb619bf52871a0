"""The data browser on an output of many shards, and on a large one: CPU of pages, requests and bytes from a bucket.

    python tests/benchmarks/browse.py [--full]

The corpus is drawn from the texts of Python's standard library with a seed: 1,000 shards of 50 documents in a bucket
on this machine, with attributes and a consolidation of as many shards, and a shard of 20,000 documents on disk with
five outputs of attributes. `--full`: 500 documents a shard, and a shard of 500,000 documents, 3 GB of rows.

    last page       CPU of the last 100 rows of the large shard: at most 3 times that of the first 100
    in a bucket     the same page of the shard in a bucket: at most 1 MB
    way             an id of the 1,000 shards, by its page, from each of three outputs: at most 20 requests and 10 MB;
                    printed: the same without the tables of ids
    merge           CPU of the table of ids: at most 0.03 of that of writing the shards
    attributes      CPU of 100 rows, each with the verdicts of five outputs of attributes beside it: at most 50 ms
    sample          CPU of 100 rows drawn from the 1,000 shards on disk: at most 1 s

CPU is that of this process, which serves and requests; the least of five rounds counts. Limits are missed with an exit
code of 1. Takes three minutes, with `--full` twenty.
"""

from __future__ import annotations

import random
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import object_stores
from browser_server import Browser, browsing
from shard_frames import compare, counted_responses, timed
from stored_outputs_for_browsing import store_output

from marin_assets.browse.limits import Limits
from marin_assets.documents import shard_name
from marin_assets.documents.frames.id_merge import merge_ids
from marin_assets.documents.frames.id_table import NAME
from marin_resources.storage.files import read_bytes, remove, write_bytes
from marin_resources.storage.paths import join

SHARDS, PAGE, ATTRIBUTES = 1000, 100, 5
LAST_PAGE, PAGE_BYTES, WAY_REQUESTS, WAY_BYTES, MERGE = 3.0, 1_000_000, 20, 10_000_000, 0.03
ATTRIBUTES_S, SAMPLE_S = 0.05, 1.0
CHARACTERS, NOISE = 6000, 900
OUTPUTS = ("documents/web", "attributes/web", "selected/web")

Rows = Iterator[dict[str, Any]]


def main() -> int:
    is_full = "--full" in sys.argv[1:]
    rows, large = (500, 500_000) if is_full else (50, 20_000)
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus()
        compare_large_shard(missed, f"{folder}/large", corpus, large)
        compare_shards(missed, f"{folder}/many", corpus, rows)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


class Corpus:
    """Documents and attributes, drawn by the number of their shard."""

    def __init__(self) -> None:
        self._texts = list(sources())

    def documents(self, shard: int, count: int) -> Rows:
        chance = random.Random(shard)
        for number in range(count):
            text = chance.choice(self._texts) + chance.randbytes(NOISE).decode("latin-1")
            yield {"id": id_of(shard, number), "text": text, "source": "python", "metadata": {"number": number}}

    def kept(self, shard: int, count: int) -> Rows:
        return (row for number, row in enumerate(self.documents(shard, count)) if number % 3)


def id_of(shard: int, number: int) -> str:
    return f"<urn:uuid:{random.Random(shard * 1_000_003 + number).getrandbits(128):032x}>"


def attributes(shard: int, count: int) -> Rows:
    for number in range(count):
        yield {"id": id_of(shard, number), "keep": number % 3 != 0, "reason": "", "value": float(number % 1000)}


def compare_large_shard(missed: list[str], prefix: str, corpus: Corpus, count: int) -> None:
    name = shard_name(0, 1)
    path = store_output(prefix, "documents/large", {name: corpus.documents(0, count)})
    beside = [
        store_output(prefix, f"attributes/{i}", {name: attributes(0, count)}, reads=[path]) for i in range(ATTRIBUTES)
    ]
    file, last = f"{path}/{name}", count - PAGE
    print(f"the large shard has {Path(prefix, file).stat().st_size:,} bytes")
    with browsing(prefix) as browser:
        cpu_s = timed(
            first=lambda: shown(browser, "rows", PAGE, path=file),
            last=lambda: shown(browser, "rows", PAGE, path=file, start=last),
            attributes=lambda: shown(browser, "rows", PAGE, path=file, start=last // 2, beside=beside),
        )
    print(", ".join(f"{name} {1000 * seconds:.1f} ms" for name, seconds in cpu_s.items()))
    compare(missed, "last page against first", cpu_s["last"] / cpu_s["first"], LAST_PAGE)
    compare(missed, "page with five attributes, s", cpu_s["attributes"], ATTRIBUTES_S)
    bucket = object_stores.gcs_prefix()
    write_bytes(join(bucket, file), read_bytes(join(prefix, file)))
    with browsing(bucket) as browser, counted_responses() as sizes:
        shown(browser, "rows", PAGE, path=f"{bucket}/{file}", start=last)
    print(f"last page of the large shard in a bucket: {len(sizes)} requests, {sum(sizes):,} bytes")
    compare(missed, "bytes of the last page", sum(sizes), PAGE_BYTES)
    object_stores.forget(bucket)


def compare_shards(missed: list[str], prefix: str, corpus: Corpus, count: int) -> None:
    names = [shard_name(i, SHARDS) for i in range(SHARDS)]
    began = time.process_time()
    paths = store_shards(prefix, corpus, names, count)
    written_s = time.process_time() - began
    merged_s = timed(merge=lambda: [merge_ids(join(prefix, path)) for path in paths])["merge"]
    compare(missed, "table of ids against writing", merged_s / written_s, MERGE)
    print(f"the table of {SHARDS * count:,} ids has {Path(prefix, paths[0], NAME).stat().st_size:,} bytes")
    with browsing(prefix) as browser:
        cpu_s = timed(sample=lambda: shown(browser, "sample", PAGE, path=paths[0], count=PAGE, seed=7))
    compare(missed, "sample of 1,000 shards, s", cpu_s["sample"], SAMPLE_S)
    compare_way(missed, corpus, names, count)


def compare_way(missed: list[str], corpus: Corpus, names: list[str], count: int) -> None:
    prefix = object_stores.gcs_prefix()
    paths = store_shards(prefix, corpus, names, count)
    for path in paths:
        merge_ids(join(prefix, path))
    chance = random.Random(5)
    for path in paths:
        shard, number = chance.randrange(SHARDS), chance.randrange(count)
        requests, size = way(prefix, path, id_of(shard, number), 3 if number % 3 else 2)
        print(f"the way from {path}: {requests} requests, {size:,} bytes")
        compare(missed, f"requests of the way from {path}", requests, WAY_REQUESTS)
        compare(missed, f"bytes of the way from {path}", size, WAY_BYTES)
    for path in paths:
        remove(join(prefix, path, NAME))
    requests, size = way(prefix, paths[0], id_of(SHARDS - 1, 1), 3)
    print(f"the way without tables of ids: {requests} requests, {size:,} bytes")
    object_stores.forget(prefix)


def way(prefix: str, path: str, id: str, stations: int) -> tuple[int, int]:
    """Requests and bytes of the page with the way of a document."""
    with browsing(prefix, limits=Limits(seconds=1200)) as browser, counted_responses() as sizes:
        shown(browser, "way", stations, path=join(prefix, path), id=id)
    return len(sizes), sum(sizes)


def store_shards(prefix: str, corpus: Corpus, names: list[str], count: int) -> list[str]:
    documents, attribute, kept = OUTPUTS
    first = store_output(prefix, documents, {name: corpus.documents(i, count) for i, name in enumerate(names)})
    second = store_output(
        prefix, attribute, {name: attributes(i, count) for i, name in enumerate(names)}, reads=[first]
    )
    third = store_output(
        prefix, kept, {name: corpus.kept(i, count) for i, name in enumerate(names)}, reads=[first, second]
    )
    return [first, second, third]


def shown(browser: Browser, page: str, rows: int, /, **query: object) -> None:
    """Request a page. Raises AssertionError if it has another number of rows."""
    answer = browser.get(page, **query)
    count = answer.html.count("<tr data-row")
    if page == "way":
        count = answer.html.count("data-open href")
    if answer.status != 200 or count != rows:
        raise AssertionError(f"/{page} of {query!r:.300} has {count} rows, expected {rows}: {answer.text!r:.600}")


def sources() -> Iterator[str]:
    for file in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))[:2000]:
        if "site-packages" not in file.parts:
            text = file.read_text(errors="replace")
            yield from (text[start : start + CHARACTERS] for start in range(0, len(text), CHARACTERS))


if __name__ == "__main__":
    raise SystemExit(main())

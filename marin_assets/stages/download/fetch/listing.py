"""The addresses of a crawl, once, in the order in which hosts are visited.

In:  rows with "url", documents with metadata.url, a text file with an address on each line, and addresses of the
     config.
Out: a file of lines "<hash of the domain> <host> TAB <id> TAB <address>", sorted, so neighbours are of one host, and
     hosts of one domain follow one another.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marin_assets.documents import BadRow, document_files, read_rows
from marin_assets.documents.formats import compression_of
from marin_assets.documents.jsonl.lines import TooLong, decompressed_chunks, split_lines
from marin_assets.stages.download.fetch.frontier import Job
from marin_assets.stages.download.links import addresses
from marin_assets.stages.download.links.addresses import Url, canonical_url, domain_of
from marin_assets.stages.download.links.seen_addresses import LinksError, address_of, hash_of
from marin_assets.stages.download.links.sorted_lines import LineSorter
from marin_resources.ray_tpu.shards.map_shards import Counts
from marin_resources.storage.files import StoredFile, open_atomic, open_to_read, stored_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REASONS = ("bad_row", *addresses.REASONS, "repeated")
TEXTS = (".txt", ".txt.gz")


@dataclass(frozen=True, kw_only=True)
class ListingShard:
    """All addresses of a crawl."""

    inputs: tuple[StoredFile, ...]
    urls: tuple[str, ...]
    outputs: tuple[str, ...]


def listing_shard(path: str | None, urls: tuple[str, ...], output: str) -> ListingShard:
    """Return the work of `list_addresses`. Raises FileNotFoundError if nothing exists at `path`."""
    files: tuple[StoredFile, ...] = ()
    if path is not None:
        files = (stored_file(path),) if path.lower().endswith(TEXTS) else document_files(path).shards
    return ListingShard(inputs=files, urls=urls, outputs=(output,))


def list_addresses(shard: ListingShard) -> Counts:
    """Write the listing. Returns rows, urls, rows_rejected, and each rejected_<reason>: rows = urls + rows_rejected."""
    counts = Counter(dict.fromkeys(("rows", "urls", "rows_rejected", *(f"rejected_{r}" for r in REASONS)), 0))
    with LineSorter() as sorter, open_atomic(shard.outputs[0], replace=False) as out:
        for text in _addresses(shard):
            counts["rows"] += 1
            url = canonical_url(text) if text is not None else "bad_row"
            if isinstance(url, str):
                _reject(counts, url)
            else:
                sorter.add(f"{key_of(url)}\t{url.url}".encode())
        last = b""
        for line in sorter.lines():
            if line == last:
                _reject(counts, "repeated")
                continue
            last = line
            counts["urls"] += 1
            out.write(line + b"\n")
    return dict(counts)


def _reject(counts: Counter[str], reason: str) -> None:
    counts["rows_rejected"] += 1
    counts[f"rejected_{reason}"] += 1


def _addresses(shard: ListingShard) -> Iterator[str | None]:
    yield from shard.urls
    for file in shard.inputs:
        if file.path.lower().endswith(TEXTS):
            yield from _text_lines(file.path)
            continue
        for _, row in read_rows(file.path):
            yield None if isinstance(row, BadRow) else address_of(row)


def _text_lines(path: str) -> Iterator[str | None]:
    with open_to_read(path) as raw:
        try:
            for line in split_lines(decompressed_chunks(raw, compression_of(path))):
                if isinstance(line, TooLong):
                    yield None
                elif line.strip():
                    yield line.decode("utf-8-sig", "replace")
        except (EOFError, OSError, zlib.error) as error:
            raise LinksError(f"The list {path!r} is damaged or cut ({error}). Write or download it again.") from error


def key_of(url: Url) -> str:
    """The place of an address in the order of the listing."""
    return f"{hash_of(domain_of(url.host)) >> 32:08x} {url.host}\t{hash_of(url.url):016x}"


def entries_of(path: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the address of each line of a listing."""
    with open_to_read(path) as file:
        for line in file:
            key, _, url = line.decode().rstrip("\n").rpartition("\t")
            yield key, url


def hashes_in(path: str) -> NDArray[np.uint64]:
    """The hashes of all addresses of a listing, ascending: 8 bytes each."""
    import numpy as np

    return np.sort(np.fromiter((int(key[-16:], 16) for key, _ in entries_of(path)), np.uint64))


def contains(hashes: NDArray[np.uint64], value: int) -> bool:
    import numpy as np

    place = int(np.searchsorted(hashes, np.uint64(value)))
    return place < len(hashes) and int(hashes[place]) == value


def jobs_of(path: str, done: NDArray[np.uint64], max_pages_per_host: int, tries: Mapping[str, int]) -> Iterator[Job]:
    """Yield a job for each address whose hash is not in `done`. `tries`: key -> failures of earlier attempts."""
    place, rank = "", 0
    for key, text in entries_of(path):
        place, rank = key[:-17], rank + 1 if key[:-17] == place else 1
        if not contains(done, int(key[-16:], 16)):
            url = canonical_url(text)
            if isinstance(url, Url):  # it is in its one form, so it stays
                yield Job(key=key, first=url, url=url, is_over_limit=rank > max_pages_per_host, tries=tries.get(key, 0))

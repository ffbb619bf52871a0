"""The papers of an archive in columns: 64 bytes for each, and its name. A million as objects take a gigabyte."""

from __future__ import annotations

import base64
import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.download.ar5iv.papers import SUFFIX, paper_of
from marin_assets.stages.download.ar5iv.zip_directory import Entry
from marin_assets.stages.download.ar5iv.zip_member import HEADER, METHODS, Member
from marin_assets.stages.download.crawl.damage import reject
from marin_assets.stages.download.wiki.versions import repeated_rows

COLUMNS = 5
"""Numbers of a member: offset, packed bytes, bytes, checksum, method."""
ENCRYPTED = 1
"""The flag of an encrypted member."""
SEPARATOR = "\n"


@dataclass(frozen=True, kw_only=True)
class Members:
    """Members that follow one another, as a shard has them."""

    names: str
    """Names, with SEPARATOR between them."""
    numbers: str
    """COLUMNS of 64 bits for each, in base64: a third of the memory that Python's numbers take."""

    def __iter__(self) -> Iterator[Member]:
        numbers = array("q", base64.b64decode(self.numbers))
        for row, name in enumerate(self.names.split(SEPARATOR)):
            offset, packed, size, checksum, method = numbers[COLUMNS * row : COLUMNS * (row + 1)]
            yield Member(
                name=name, offset=offset, packed_bytes=packed, size_bytes=size, checksum=checksum, method=method
            )


@dataclass(kw_only=True)
class Listing:
    """The papers of an archive that may be read, in the order of their places."""

    names: list[str]
    numbers: Any
    """A row of COLUMNS for each."""
    ids: Any
    """The two halves of the digest of its id, and its version."""

    def keep(self, rows: Any) -> None:
        """Keep some rows, in the order of their numbers in `rows`."""
        self.names = [self.names[row] for row in rows]
        self.numbers, self.ids = self.numbers[rows], self.ids[rows]

    def groups(self, shard_bytes: int) -> Iterator[Members]:
        """Yield the members in groups of about so many bytes."""
        start = size = 0
        sizes = self.numbers[:, 2].tolist()
        for row, more in enumerate(sizes):
            if row > start and size + more > shard_bytes:
                yield self._members(start, row)
                start, size = row, 0
            size += more
        if start < len(sizes):
            yield self._members(start, len(sizes))

    def _members(self, start: int, end: int) -> Members:
        numbers = base64.b64encode(self.numbers[start:end].tobytes()).decode()
        return Members(names=SEPARATOR.join(self.names[start:end]), numbers=numbers)


def listing_of(entries: Iterable[Entry], *, file_bytes: int, max_page_bytes: int, counts: Counter[str]) -> Listing:
    """Return the papers of a directory.

    Adds to `counts` members, ignored_members (folders, and names without .html), and rejected with its reasons
    no_arxiv_id, too_large, encrypted, unknown_method, cut_member and overlap.
    """
    import numpy as np

    names: list[str] = []
    numbers, ids, begins = array("q"), array("q"), array("q")
    for entry in entries:
        offset = entry.offset
        if offset < file_bytes:
            begins.append(offset)
        if not entry.name.endswith(SUFFIX):
            counts["ignored_members"] += 1
            continue
        counts["members"] += 1
        paper = None if SEPARATOR in entry.name else paper_of(entry.name)
        if paper is None or (reason := _reason(entry, file_bytes, max_page_bytes)):
            reject(counts, "no_arxiv_id" if paper is None else reason)
            continue
        names.append(entry.name)
        numbers.extend((offset, entry.packed_bytes, entry.size_bytes, entry.checksum, entry.method))
        digest = hashlib.blake2b(paper.id.encode(), digest_size=16).digest()
        ids.extend((*memoryview(digest).cast("q"), paper.version))
    listing = Listing(
        names=names,
        numbers=np.array(numbers, dtype=np.int64).reshape(-1, COLUMNS),
        ids=np.array(ids, dtype=np.int64).reshape(-1, 3),
    )
    listing.keep(np.argsort(listing.numbers[:, 0], kind="stable"))
    _leave_out_overlaps(listing, np.unique(np.array(begins, dtype=np.int64)), counts)
    return listing


def _reason(entry: Entry, file_bytes: int, max_page_bytes: int) -> str:
    if entry.flags & ENCRYPTED:
        return "encrypted"
    if entry.method not in METHODS:
        return "unknown_method"
    if entry.size_bytes > max_page_bytes:
        return "too_large"
    return "cut_member" if entry.offset + HEADER.size + entry.packed_bytes > file_bytes else ""


def _leave_out_overlaps(listing: Listing, begins: Any, counts: Counter[str]) -> None:
    """Leave out members that end after the beginning of another one, or begin where one before them in the list does.

    A bomb has thousands of members of the same bytes.
    """
    import numpy as np

    starts = listing.numbers[:, 0]
    ends = starts + HEADER.size + listing.numbers[:, 1]
    following = np.searchsorted(begins, starts, side="right")
    limits = np.append(begins, np.iinfo(np.int64).max)[following]
    repeated = np.zeros(len(starts), dtype=bool)
    repeated[1:] = starts[1:] == starts[:-1]
    overlaps = (ends > limits) | repeated
    reject(counts, "overlap", int(overlaps.sum()))
    listing.keep(np.flatnonzero(~overlaps))


def leave_out_duplicates(listings: Sequence[Listing], counts: Counter[str]) -> None:
    """Leave out papers that another row of any listing has in a greater version, or an earlier one in the same."""
    import numpy as np

    ids = np.concatenate([listing.ids for listing in listings]) if listings else np.zeros((0, 3), dtype=np.int64)
    repeated = repeated_rows(ids)
    reject(counts, "duplicate", int(repeated.sum()))
    start = 0
    for listing in listings:
        end = start + len(listing.ids)
        listing.keep(np.flatnonzero(~repeated[start:end]))
        start = end

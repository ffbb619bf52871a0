"""The rows of a token cache that a sequence of a batch is from: documents are concatenated, and cut into sequences.

In:  a split, a range of its tokens.   Out: the rows with tokens in it, in order.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from marin_assets.browse.places import Places
from marin_assets.browse.stored.token_rows import ERRORS, ends_of, ledger_of, names_of, unreadable
from marin_assets.documents.caches.token_cache import FIELD
from marin_resources.storage.paths import join

MOST_SHARDS = 2000
"""Shards of a split whose ledgers are read for one page."""
MOST_ROWS = 200
"""Documents of a sequence that are named."""


@dataclass(frozen=True, kw_only=True)
class RowInSequence:
    """A document, or a part of one."""

    text: str
    """The address of the shard of its cache."""
    number: int
    name: str
    """The id of the document; empty if the cache has no names."""
    start: int
    """Number of its first token in the sequence."""
    count: int
    skipped: int
    """Number of its tokens before the sequence."""


class Splits:
    """The shards of the splits of one page, read once."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._shards: dict[str, tuple[list[str], list[int]]] = {}
        self._ends: dict[str, list[int]] = {}
        self._names: dict[str, list[str]] = {}

    def rows(self, split: str, first: int, count: int) -> list[RowInSequence]:
        """The rows with tokens `first` to `first + count - 1` of a split; none of a split of too many shards.

        Raises BrowseError for a damaged cache.
        """
        try:
            folders, firsts = self._shards_of(split)
            rows: list[RowInSequence] = []
            shard = max(bisect_right(firsts, first) - 1, 0)
            while shard < len(folders) and firsts[shard] < first + count and len(rows) < MOST_ROWS:
                rows += self._rows_in(folders[shard], firsts[shard], first, count)
                shard += 1
            return rows[:MOST_ROWS]
        except ERRORS as error:
            raise unreadable(split, error) from error

    def _rows_in(self, folder: str, offset: int, first: int, count: int) -> list[RowInSequence]:
        """The rows of a shard whose tokens begin at `offset` of the split."""
        if folder not in self._ends:
            self._ends[folder], self._names[folder] = ends_of(self._places, folder), names_of(folder)
        ends, names = self._ends[folder], self._names[folder]
        rows: list[RowInSequence] = []
        text = self._places.text_of(folder) or folder
        number = bisect_right(ends, max(first - offset, 0))
        while number < len(ends) and len(rows) < MOST_ROWS:
            begin, end = offset + (ends[number - 1] if number else 0), offset + ends[number]
            if begin >= first + count:
                break
            start, stop = max(begin, first), min(end, first + count)
            rows.append(
                RowInSequence(
                    text=text,
                    number=number,
                    name=names[number] if number < len(names) else "",
                    start=start - first,
                    count=stop - start,
                    skipped=start - begin,
                )
            )
            number += 1
        return rows

    def _shards_of(self, split: str) -> tuple[list[str], list[int]]:
        """The folders of the shards, and the first token of each."""
        if split not in self._shards:
            ledger = ledger_of(split)
            names = list(ledger["finished_shards"]) if ledger.get("layout") == "sharded" else []
            if len(names) > MOST_SHARDS:
                return [], []
            folders = [join(split, str(name)) for name in names] or [split]
            firsts, total = [], 0
            for folder in folders:
                firsts.append(total)
                total += int((ledger_of(folder).get("field_counts") or {}).get(FIELD, 0)) if folder != split else 0
            self._shards[split] = folders, firsts
        return self._shards[split]

"""Sample the rejected documents of each attribute and reason: those with the smallest hashes of their ids.

The sample does not depend on shards or their order, and its memory does not grow with the number of rejections.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from marin_assets.documents import BadRow, Document, DocumentError, read_rows, write_rows
from marin_assets.documents.attributes import Decision
from marin_assets.documents.position import POSITIONS, position

Sample = dict[str, Any]


class RejectedSample:
    """At most `count` documents for each (attribute, reason), each with the first `characters` of its text."""

    def __init__(self, count: int, characters: int) -> None:
        self._count, self._characters = count, characters
        self._samples: dict[tuple[str, str], list[Sample]] = defaultdict(list)
        self._furthest: dict[tuple[str, str], int] = defaultdict(lambda: POSITIONS)

    def add(self, attribute: str, document: Document, decision: Decision) -> None:
        key, at = (attribute, decision.reason), position(document.id)
        if at > self._furthest[key]:
            return
        sample = {
            "attribute": attribute,
            "reason": decision.reason,
            "position": at,
            "id": document.id,
            "source": document.source,
            "value": decision.value if decision.value is not None and math.isfinite(decision.value) else None,
            "characters": len(document.text),
            "text": document.text[: self._characters],
        }
        self._take(key, sample)

    def write(self, path: str) -> None:
        """Write one shard's sample; `read` reads it."""
        samples = (sample for key in sorted(self._samples) for sample in self._smallest(self._samples[key]))
        write_rows(path, samples, replace=False)

    def read(self, path: str) -> None:
        """Merge another shard's sample. Raises DocumentError for a damaged file."""
        for number, row in read_rows(path):
            if isinstance(row, BadRow):
                raise DocumentError(f"{path!r} line {number} is no rejected document ({row.detail}). Remove the file.")
            self._take((row["attribute"], row["reason"]), row)

    def of(self, attribute: str, reason: str) -> Iterator[Sample]:
        """Yield the sampled documents of one reason, as rows of rejected.json."""
        for sample in self._smallest(self._samples[attribute, reason]):
            yield {key: sample[key] for key in ("id", "source", "value", "characters", "text")}

    def _take(self, key: tuple[str, str], sample: Sample) -> None:
        group = self._samples[key]
        group.append(sample)
        if len(group) >= 2 * self._count:
            group[:] = self._smallest(group)
            self._furthest[key] = group[-1]["position"] if group else -1

    def _smallest(self, group: list[Sample]) -> list[Sample]:
        return heapq.nsmallest(self._count, group, key=_order)


def _order(sample: Sample) -> tuple[int, str, str, str]:
    return sample["position"], sample["id"], sample["source"], sample["text"]

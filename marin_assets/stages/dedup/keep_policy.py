"""Keep policies: choose the document of a cluster of near-duplicates that is kept.

    first     the first in the order of the documents (shard, row)
    longest   the one with the most characters
    highest   the one with the highest value in an attribute, for example a quality score; no value is the lowest

A ranking of sources, if given, is compared first: earlier sources win, sources without a rank come last. `longest` and
`highest` break ties by the smallest hash of the text, so the kept texts do not depend on the shards. Of equal texts
they keep the first, as `exact_duplicates` does. Otherwise each of the two attributes would reject the document that the
other keeps, and the text would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marin_assets.stages.dedup.merge import merge_parts
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIRST, LONGEST, HIGHEST = POLICIES = ("first", "longest", "highest")
MIN_MERGED = 1 << 16
"""Candidates that are collected before they are merged."""


class KeepPolicyError(MarinError, ValueError):
    """An unknown policy, or one without the attributes or sources that it needs."""


@dataclass(frozen=True, kw_only=True)
class KeepPolicy:
    """A policy with its ranking of sources. Raises KeepPolicyError if they do not fit together."""

    keep: str
    """One of POLICIES."""
    sources: tuple[str, ...]
    attributes_path: str | None
    """Required for "highest", None for the others."""

    def __post_init__(self) -> None:
        if self.keep not in POLICIES:
            raise KeepPolicyError(f"keep is {self.keep!r}, {expected_one_of(self.keep, POLICIES)}")
        if (self.keep == HIGHEST) != (self.attributes_path is not None):
            raise KeepPolicyError(
                f"keep is {self.keep!r} and attributes_path {self.attributes_path!r}: {HIGHEST!r} needs attributes to "
                "compare, the other policies take none."
            )
        if len(set(self.sources)) != len(self.sources):
            raise KeepPolicyError(f"sources are {self.sources!r}, expected each source once.")


def candidate(policy: KeepPolicy, row: Mapping[str, Any], value: float | None) -> tuple[int, int, int, float, int]:
    """Return a row of the cluster table as a record. The smallest record of a cluster is kept.

    `value` is the document's value in the attributes of "highest".
    """
    rank = policy.sources.index(row["source"]) if row["source"] in policy.sources else len(policy.sources)
    number = (row["shard"] << 32) + row["row"]
    if policy.keep == FIRST:
        return row["cluster"], number, rank, 0.0, 0
    worth = float(row["characters"]) if policy.keep == LONGEST else value
    if worth is None or worth != worth:  # no value, or NaN
        worth = float("-inf")
    return row["cluster"], number, rank, -worth, int(row["tie"], 16)


def record() -> Any:
    """Return the dtype of a candidate."""
    import numpy as np

    return np.dtype([("cluster", "<u8"), ("document", "<u8"), ("rank", "<u4"), ("order", "<f8"), ("tie", "<u8")])


def best(parts: Iterable[NDArray[Any]]) -> NDArray[np.uint64]:
    """Return the kept documents, one of each cluster, ascending."""
    import numpy as np

    merged = merge_parts(parts, _smallest_of_clusters, np.empty(0, record()), min_waiting=MIN_MERGED)
    return np.sort(merged["document"])


def _smallest_of_clusters(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    import numpy as np

    records = np.concatenate(parts)
    records = records[np.lexsort([records[name] for name in ("document", "tie", "order", "rank", "cluster")])]
    first = np.ones(len(records), bool)
    first[1:] = records["cluster"][1:] != records["cluster"][:-1]
    return records[first]


def in_chunks(records: Iterable[tuple[Any, ...]], size: int = 1 << 14) -> Iterator[NDArray[Any]]:
    """Yield arrays of at most `size` records from tuples; the last may be empty."""
    import numpy as np

    chunk: list[tuple[Any, ...]] = []
    for row in records:
        chunk.append(row)
        if len(chunk) == size:
            yield np.array(chunk, record())
            chunk = []
    yield np.array(chunk, record())

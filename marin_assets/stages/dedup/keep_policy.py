"""Keep policies: which document of a cluster of near-duplicates stays.

    first     the first in the order of the documents (shard, row)
    longest   the one with the most characters
    highest   the one with the highest value in an attribute, for example a quality score; without a value it is lowest

Before that comes a ranking of sources, if there is one: earlier ones win, those that it does not name come last. Of
equals `longest` and `highest` keep the one with the least hash of its text, so the texts that they keep do not depend
on how the documents are spread over shards; and of equal texts the first, which is the one that `exact_duplicates`
keeps. Were it another, each of the two attributes would reject what the other keeps, and the text would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIRST, LONGEST, HIGHEST = POLICIES = ("first", "longest", "highest")
LEAST_MERGED = 1 << 16


class KeepPolicyError(ValueError):
    """A policy that there is not, or that lacks what it judges by."""


@dataclass(frozen=True, kw_only=True)
class KeepPolicy:
    keep: str
    sources: tuple[str, ...]
    attributes_path: str | None

    def __post_init__(self) -> None:
        if self.keep not in POLICIES:
            raise KeepPolicyError(f"keep is {self.keep!r}, expected one of {', '.join(POLICIES)}.")
        if (self.keep == HIGHEST) != (self.attributes_path is not None):
            raise KeepPolicyError(
                f"keep is {self.keep!r} and attributes_path {self.attributes_path!r}: {HIGHEST!r} needs the attributes "
                "whose value decides, the others none."
            )
        if len(set(self.sources)) != len(self.sources):
            raise KeepPolicyError(f"sources are {self.sources!r}, expected each of them once.")


def candidate(policy: KeepPolicy, row: Mapping[str, Any], value: float | None) -> tuple[int, int, int, float, int]:
    """A row of the cluster table as a record: the least of a cluster stays. `value` is the attribute's."""
    rank = policy.sources.index(row["source"]) if row["source"] in policy.sources else len(policy.sources)
    number = (row["shard"] << 32) + row["row"]
    if policy.keep == FIRST:
        return row["cluster"], number, rank, 0.0, 0
    worth = float(row["characters"]) if policy.keep == LONGEST else value
    if worth is None or worth != worth:  # none, or not a number
        worth = float("-inf")
    return row["cluster"], number, rank, -worth, int(row["tie"], 16)


def record() -> Any:
    import numpy as np

    return np.dtype([("cluster", "<u8"), ("document", "<u8"), ("rank", "<u4"), ("order", "<f8"), ("tie", "<u8")])


def best(parts: Iterable[NDArray[Any]]) -> NDArray[np.uint64]:
    """The documents that stay, one of each cluster, ascending. What waits is merged when it outgrows what is there."""
    import numpy as np

    merged = np.empty(0, record())
    waiting: list[NDArray[Any]] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) > max(len(merged), LEAST_MERGED):
            merged, waiting = _least_of_clusters([merged, *waiting]), []
    return np.sort(_least_of_clusters([merged, *waiting])["document"])


def _least_of_clusters(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    import numpy as np

    records = np.concatenate(parts)
    records = records[np.lexsort([records[name] for name in ("document", "tie", "order", "rank", "cluster")])]
    first = np.ones(len(records), bool)
    first[1:] = records["cluster"][1:] != records["cluster"][:-1]
    return records[first]


def in_chunks(records: Iterable[tuple[Any, ...]], size: int = 1 << 14) -> Iterator[NDArray[Any]]:
    """Tuples as arrays of at most `size` records."""
    import numpy as np

    chunk: list[tuple[Any, ...]] = []
    for one in records:
        chunk.append(one)
        if len(chunk) == size:
            yield np.array(chunk, record())
            chunk = []
    yield np.array(chunk, record())

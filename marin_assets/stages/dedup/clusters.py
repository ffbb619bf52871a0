"""Clusters: the connected components of links, by union-find on numpy's arrays.

All pairs of an array are joined at once: the larger root of each pair goes below the smallest that it meets, until no
pair has two roots. Memory is 8 bytes a linked document for its number and 8 for its parent, and some 70 while a part of
the links is sorted; documents without a link cost nothing. Three million documents with 40 million links take 5 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """Every document of a cluster of two or more."""

    documents: NDArray[np.uint64]
    """Ascending."""
    clusters: NDArray[np.uint64]
    """The first document of each one's cluster: the cluster's number."""
    sizes: NDArray[np.uint32]
    """Of each one's cluster."""


def clusters_of(parts: Iterable[Callable[[], NDArray[np.uint64]]]) -> Clusters:
    """Clusters of links [n, 2], which come in parts; each part is asked for twice and held once."""
    import numpy as np

    parts = list(parts)
    documents = distinct(part() for part in parts)
    parents = np.arange(len(documents))
    for part in parts:
        links = part()
        join(parents, _places(documents, links[:, 0]), _places(documents, links[:, 1]))
    roots = roots_of(parents, np.arange(len(documents)))
    sizes = np.bincount(roots, minlength=len(documents)).astype(np.uint32)
    return Clusters(documents=documents, clusters=documents[roots], sizes=sizes[roots])


def distinct(parts: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Every number of the parts once, ascending. What waits is merged when it outgrows what is there."""
    import numpy as np

    merged = np.empty(0, np.uint64)
    waiting: list[NDArray[np.uint64]] = []
    for part in parts:
        waiting.append(_unique(part.ravel()))
        if sum(map(len, waiting)) > len(merged):
            merged, waiting = _unique(np.concatenate([merged, *waiting])), []
    return _unique(np.concatenate([merged, *waiting]))


def join(parents: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64]) -> None:
    """Put a[i] and b[i] into one tree, for each i. A root stays the smallest node of its tree."""
    import numpy as np

    while len(a):
        a, b = roots_of(parents, a), roots_of(parents, b)
        apart = a != b
        a, b = a[apart], b[apart]
        np.minimum.at(parents, np.maximum(a, b), np.minimum(a, b))


def roots_of(parents: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The root of each node. Every node comes to lie right below its root: paths halve at each turn."""
    above = parents[nodes]
    while True:
        further = parents[above]
        if (further == above).all():
            return above
        parents[nodes] = above = further


def _unique(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """By sorting: np.unique, which hashes since numpy 2.3, takes 1.4 s for 2.8 million where this takes 0.1 s."""
    import numpy as np

    numbers = np.sort(numbers)
    first = np.ones(len(numbers), bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return numbers[first]


def _places(documents: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Where each is among the documents. Looked up in order, which is four times faster than at random."""
    import numpy as np

    order = np.argsort(wanted)
    places = np.empty(len(wanted), np.int64)
    places[order] = np.searchsorted(documents, wanted[order])
    return places

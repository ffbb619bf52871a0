"""Many files at once, by threads: the largest first, so that none is left alone at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from marin_resources.storage.paths import is_local

BUCKET_THREADS = 16
"""There a thread waits more than it computes."""

T = TypeVar("T")
R = TypeVar("R")


def map_largest_first(do: Callable[[T], R], items: Sequence[T], *, size: Callable[[T], int], threads: int) -> list[R]:
    """`do` of each item, in their order. What an item raises is raised, and what has not begun by then never does."""
    pool = ThreadPoolExecutor(threads)
    try:
        order = sorted(range(len(items)), key=lambda index: size(items[index]), reverse=True)
        begun = {index: pool.submit(do, items[index]) for index in order}
        return [begun[index].result() for index in range(len(items))]
    finally:
        pool.shutdown(cancel_futures=True)


def read_threads(paths: Iterable[str]) -> int:
    """How many threads read files best: one for each core on a disk, where checksums are computed at its speed."""
    return (os.cpu_count() or 1) if all(map(is_local, paths)) else BUCKET_THREADS

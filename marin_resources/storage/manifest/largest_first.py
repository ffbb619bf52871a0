"""Process many files in threads, the largest first, so that no large file remains alone at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from marin_resources.storage.paths import is_local

BUCKET_THREADS = 16
"""More than cores: a thread waits for the network more than it computes."""

T = TypeVar("T")
R = TypeVar("R")


def map_largest_first(do: Callable[[T], R], items: Sequence[T], *, size: Callable[[T], int], threads: int) -> list[R]:
    """Return `do(item)` for each item, in their order. The first error is raised, and pending items are cancelled."""
    pool = ThreadPoolExecutor(threads)
    try:
        order = sorted(range(len(items)), key=lambda index: size(items[index]), reverse=True)
        begun = {index: pool.submit(do, items[index]) for index in order}
        return [begun[index].result() for index in range(len(items))]
    finally:
        pool.shutdown(cancel_futures=True)


def read_threads(paths: Iterable[str]) -> int:
    """Number of threads to read files: one per core on a disk, where the checksums are the limit; 16 for buckets."""
    return (os.cpu_count() or 1) if all(map(is_local, paths)) else BUCKET_THREADS

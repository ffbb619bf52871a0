"""Merge many arrays into one, a few at a time, without holding all of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def merge_parts(
    parts: Iterable[NDArray[Any]],
    merge: Callable[[Sequence[NDArray[Any]]], NDArray[Any]],
    empty: NDArray[Any],
    *,
    min_waiting: int = 0,
) -> NDArray[Any]:
    """Return the merged parts. `merge` joins arrays into one, `empty` is the result of no parts.

    Waiting parts are merged when they are longer than the merged array and than `min_waiting`.
    """
    merged, waiting = empty, list[Any]()
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) > max(len(merged), min_waiting):
            merged, waiting = merge([merged, *waiting]), []
    return merge([merged, *waiting])

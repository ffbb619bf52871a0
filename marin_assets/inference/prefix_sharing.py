"""One row of a batch for several texts to score: those whose inputs are the beginning of one another.

A question with the choices A to D has four texts that differ in their last token, which is no input: one row does for
all. Under a causal mask a token's scores depend on what is before it alone, so they are those of a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class SharedRow:
    """A row: the inputs of its longest text, and the texts whose targets are scored in it."""

    inputs: Sequence[int]
    members: list[int] = field(default_factory=list)
    """Indices of texts."""
    scored: int = 0
    """Targets of all members."""


def share_rows(texts: Sequence[Sequence[int]], counts: Sequence[int], room: Callable[[int], int]) -> list[SharedRow]:
    """Give each text a row: that of a text that continues it, if one has room, else its own.

    `texts` are ids, of whose last `counts` are targets; all but a text's last are its inputs. `room` returns how many
    targets may be scored in a row with that number of inputs.
    """
    rows: list[SharedRow] = []
    # backwards, a text comes right after those that it is the beginning of
    for i in sorted(range(len(texts)), key=lambda i: tuple(texts[i][:-1]), reverse=True):
        inputs = texts[i][:-1]
        last = rows[-1] if rows else None
        if last is None or list(last.inputs[: len(inputs)]) != list(inputs) or _is_full(last, counts[i], room):
            rows.append(SharedRow(inputs))
        rows[-1].members.append(i)
        rows[-1].scored += counts[i]
    return rows


def _is_full(row: SharedRow, more: int, room: Callable[[int], int]) -> bool:
    return row.scored + more > room(len(row.inputs))

"""One row of a batch for several texts to score: those that begin alike, as the choices of a question do.

A question with the choices A to D has four texts that differ in their last token, which is no input: one row does for
all. Choices of several tokens are packed: the inputs that all texts of a row begin with come once, then the rest of
each. A mask hides the rests from one another, and positions continue after the shared part for each (the tree attention
of SpecInfer, Miao et al., ASPLOS 2024). So a token's scores depend on its own text alone, as in a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile


@dataclass
class SharedRow:
    """A row: the inputs of its longest text, and the texts whose targets are scored in it."""

    inputs: Sequence[int]
    members: list[int] = field(default_factory=list)
    """Indices of texts."""
    scored: int = 0
    """Targets of all members."""


@dataclass
class PackedRow:
    """A row in which several rows follow one another, after `shared` inputs that they have in common."""

    shared: int
    branches: list[SharedRow]

    @property
    def is_packed(self) -> bool:
        return len(self.branches) > 1

    @property
    def length(self) -> int:
        return self.shared + sum(len(branch.inputs) - self.shared for branch in self.branches)

    @property
    def scored(self) -> int:
        return sum(branch.scored for branch in self.branches)

    @property
    def members(self) -> list[int]:
        return [i for branch in self.branches for i in branch.members]

    def tokens(self) -> Iterator[tuple[int, int, int]]:
        """Each input's id, its position in its text, and the number of its branch from 1, or 0 if all share it."""
        for position, token in enumerate(self.branches[0].inputs[: self.shared]):
            yield token, position, 0
        for number, branch in enumerate(self.branches, start=1):
            for position, token in enumerate(branch.inputs[self.shared :], start=self.shared):
                yield token, position, number

    def places(self, texts: Sequence[Sequence[int]], counts: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """Each text of the row, and the places in it of the inputs before its targets."""
        skipped = 0  # places between the shared inputs and those of the branch
        for branch in self.branches:
            for i in branch.members:
                inputs = len(texts[i]) - 1
                yield i, [at if at < self.shared else at + skipped for at in range(inputs - counts[i], inputs)]
            skipped += len(branch.inputs) - self.shared


def share_rows(texts: Sequence[Sequence[int]], counts: Sequence[int], room: Callable[[int], int]) -> list[SharedRow]:
    """Give each text a row: that of a text that continues it, if one has room, else its own.

    `texts` are ids, of whose last `counts` are targets; all but a text's last are its inputs. `room` returns how many
    targets may be scored in a row with that number of inputs. Rows that begin alike are adjacent in the result.
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


def pack_rows(rows: Sequence[SharedRow], longest: int) -> list[PackedRow]:
    """Pack adjacent rows where that saves at least a quarter of the inputs of each that is added.

    A packed row has at most `longest` inputs, and at most as many targets. With `longest` 0, no rows are packed.
    """
    packed: list[PackedRow] = []
    for row in rows:
        if packed and (joined := _joined(packed[-1], row, longest)) is not None:
            packed[-1] = joined
        else:
            packed.append(PackedRow(len(row.inputs), [row]))
    return packed


def _joined(before: PackedRow, row: SharedRow, longest: int) -> PackedRow | None:
    pairs = zip(before.branches[0].inputs[: before.shared], row.inputs, strict=False)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    joined = PackedRow(alike, [*before.branches, row])
    saved = before.length + len(row.inputs) - joined.length
    fits = joined.length <= longest and joined.scored <= longest
    return joined if fits and 4 * saved >= len(row.inputs) else None

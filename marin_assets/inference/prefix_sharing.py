"""One row of a batch for several texts to score: those that begin alike, as the choices of a question do.

A question with the choices A to D has four texts that differ in their last token, which is no input: one run of inputs
does for all. Choices of several tokens are a tree: the inputs that all its texts begin with come once, then the rest of
each, a branch. A row is filled with trees. A mask hides the trees and the branches of a tree from one another, and
positions begin with each tree, and continue after the shared part for each branch (the tree attention of SpecInfer,
Miao et al., ASPLOS 2024). So a token's scores depend on its own text alone, as in a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile


@dataclass
class SharedInputs:
    """The inputs of the longest of some texts, which begin with those of the others."""

    inputs: Sequence[int]
    members: list[int] = field(default_factory=list)
    """Indices of texts."""
    scored: int = 0
    """Targets of all members."""


@dataclass
class TextTree:
    """Branches that follow one another, after `shared` inputs that they have in common."""

    shared: int
    branches: list[SharedInputs]

    @property
    def length(self) -> int:
        return self.shared + sum(len(branch.inputs) - self.shared for branch in self.branches)

    @property
    def scored(self) -> int:
        return sum(branch.scored for branch in self.branches)


@dataclass
class Row:
    """Trees that follow one another."""

    trees: list[TextTree]

    @property
    def length(self) -> int:
        return sum(tree.length for tree in self.trees)

    @property
    def members(self) -> list[int]:
        return [i for tree in self.trees for branch in tree.branches for i in branch.members]

    def tokens(self) -> Iterator[tuple[int, int, int, int]]:
        """Each input's id, its position in its text, and the numbers of its part and of the part that its tree shares,
        from 1."""
        part = 0
        for tree in self.trees:
            part = root = part + 1
            for position, token in enumerate(tree.branches[0].inputs[: tree.shared]):
                yield token, position, root, root
            for branch in tree.branches:
                part += 1
                for position, token in enumerate(branch.inputs[tree.shared :], start=tree.shared):
                    yield token, position, part, root

    def places(self, texts: Sequence[Sequence[int]], counts: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """Each text of the row, and the places in it of the inputs before its targets."""
        begin = 0
        for tree in self.trees:
            skipped = 0  # places between the shared inputs and those of the branch
            for branch in tree.branches:
                for i in branch.members:
                    inputs = range(len(texts[i]) - 1 - counts[i], len(texts[i]) - 1)
                    yield i, [begin + (at if at < tree.shared else at + skipped) for at in inputs]
                skipped += len(branch.inputs) - tree.shared
            begin += tree.length


def share_inputs(
    texts: Sequence[Sequence[int]], counts: Sequence[int], room: Callable[[int], int]
) -> list[SharedInputs]:
    """Give each text the inputs of a text that continues it, if they have room, else its own.

    `texts` are ids, of whose last `counts` are targets; all but a text's last are its inputs. `room` returns how many
    targets may be scored with that number of inputs. Those that begin alike are adjacent in the result.
    """
    runs: list[SharedInputs] = []
    # backwards, a text comes right after those that it is the beginning of
    for i in sorted(range(len(texts)), key=lambda i: tuple(texts[i][:-1]), reverse=True):
        inputs = texts[i][:-1]
        last = runs[-1] if runs else None
        if last is None or list(last.inputs[: len(inputs)]) != list(inputs) or _is_full(last, counts[i], room):
            runs.append(SharedInputs(inputs))
        runs[-1].members.append(i)
        runs[-1].scored += counts[i]
    return runs


def _is_full(run: SharedInputs, more: int, room: Callable[[int], int]) -> bool:
    return run.scored + more > room(len(run.inputs))


def grow_trees(runs: Sequence[SharedInputs], longest: int) -> list[TextTree]:
    """Make adjacent runs of inputs a tree where that saves at least a quarter of the inputs of each that is added.

    A tree of several has at most `longest` inputs, and at most as many targets. With `longest` 0, each run is a tree.
    """
    trees: list[TextTree] = []
    for run in runs:
        if trees and (joined := _joined(trees[-1], run, longest)) is not None:
            trees[-1] = joined
        else:
            trees.append(TextTree(len(run.inputs), [run]))
    return trees


def _joined(before: TextTree, run: SharedInputs, longest: int) -> TextTree | None:
    pairs = zip(before.branches[0].inputs[: before.shared], run.inputs, strict=False)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    joined = TextTree(alike, [*before.branches, run])
    saved = before.length + len(run.inputs) - joined.length
    fits = joined.length <= longest and joined.scored <= longest
    return joined if fits and 4 * saved >= len(run.inputs) else None


def fill_rows(trees: Sequence[TextTree], length: int) -> list[Row]:
    """Put trees of at most `length` inputs into rows of that length, each where it leaves the least room (best fit, the
    longest first). The result depends on the trees alone."""
    rows: list[Row] = []
    by_room: list[list[Row]] = [[] for _ in range(length + 1)]
    for tree in sorted(trees, key=lambda tree: -tree.length):
        room = next((room for room in range(tree.length, length + 1) if by_room[room]), length)
        if by_room[room]:
            row = by_room[room].pop()
        else:
            rows.append(row := Row([]))
        row.trees.append(tree)
        by_room[room - tree.length].append(row)
    return rows

"""The threads of one tree of messages: the paths from its root to answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Path = list["Node"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A message of a tree."""

    id: str
    parent: str | None
    role: str
    """As the rows have it."""
    is_answer: bool
    text: str
    rank: float | None
    language: str | None


def threads_of(nodes: Sequence[Node], *, best: bool, counts: Counter[str]) -> Iterator[Path]:
    """Yield the threads of a tree: the best one, or all that end with an answer which no other answer follows.

    Messages that are in no thread are counted: orphan, if their root is not among them, and not_chosen. The order of
    `nodes` does not matter. A deep tree needs no deep stack.
    """
    children: dict[str | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    reached = list(_below(children))
    counts["orphan"] += len(nodes) - len(reached)
    answered: dict[str, bool] = {}
    for node in reversed(reached):  # children come before their parents
        answered[node.id] = any(child.is_answer or answered[child.id] for child in children.get(node.id, ()))
    if best:
        ends = [end] if (end := _best_end(children, answered)) is not None else []
    else:
        ends = [node for node in reached if node.is_answer and not answered[node.id]]
    by_id = {node.id: node for node in reached}
    in_threads: set[str] = set()
    for end in ends:
        path = [end]
        while path[-1].parent is not None:
            path.append(by_id[path[-1].parent])
        in_threads.update(node.id for node in path)
        yield path[::-1]
    counts["not_chosen"] += len(reached) - len(in_threads)


def _below(children: dict[str | None, list[Node]]) -> Iterator[Node]:
    """The messages that a root has, parents before their children, in the order of rank and id."""
    stack = sorted(children.get(None, ()), key=_order, reverse=True)
    while stack:
        node = stack.pop()
        yield node
        stack.extend(sorted(children.get(node.id, ()), key=_order, reverse=True))


def _best_end(children: dict[str | None, list[Node]], answered: dict[str, bool]) -> Node | None:
    """The last answer on the way that takes the child of the lowest rank; a question without an answer is no way on."""
    end, parent = None, None
    while following := [node for node in children.get(parent, ()) if node.is_answer or answered[node.id]]:
        node = min(following, key=_order)
        end, parent = node if node.is_answer else end, node.id
    return end


def _order(node: Node) -> tuple[bool, float, str]:
    """Rank 0 is the best; without a rank after those with one; then by id."""
    return node.rank is None, node.rank or 0.0, node.id

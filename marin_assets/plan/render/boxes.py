"""Outputs as the nodes of a picture: a node for each step, or for steps that are alike.

Of a large picture the steps are drawn that are not calm, such as those that run, and their inputs. Steps that read the
same, for the same reason, are one node if no other step reads them, or, of more than a few, if the same steps do: the
trainings of a sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from marin_assets.stages.report.dag import DagNode

DRAWN = 60
"""Nodes in the picture. More would be a picture that nobody reads."""
APART = 3
"""Number of steps that others read, and that are alike, up to which each is a node."""
LISTED = 20
"""Names in the tooltip of a node."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """One output. The outputs of one step are one node."""

    step: str
    parents: tuple[str, ...]
    """Names of the steps that it reads."""
    state: str
    """The class of its node, by which the page colours it."""
    reason: str = ""
    link: str = "#"
    """The page's section on it."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """The states of boxes, the one first on which people act first; the last is calm, and not drawn in a large
    picture."""

    states: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    """State -> the word for it, if that is another one."""

    def most_urgent(self, boxes: Iterable[Box]) -> str:
        return min((box.state for box in boxes), key=self.states.index)

    def is_calm(self, boxes: Iterable[Box]) -> bool:
        return self.most_urgent(boxes) == self.states[-1]


Steps = list[list[Box]]
"""The boxes of each of some steps."""


def nodes_to_draw(boxes: Iterable[Box], order: Order) -> tuple[list[DagNode], int]:
    """The nodes, and how many steps are left out."""
    by_step: dict[str, list[Box]] = {}
    for box in boxes:
        by_step.setdefault(box.step, []).append(box)
    nodes = _together(by_step.values())
    if len(nodes) > DRAWN:
        active = {name for name, own in by_step.items() if not order.is_calm(own)}
        near = {parent for name in active for parent in by_step[name][0].parents}
        nodes = [steps for steps in nodes if steps[0][0].step in active | near][:DRAWN]
    return [_node(steps, order) for steps in nodes], len(by_step) - sum(map(len, nodes))


def _together(steps: Iterable[list[Box]]) -> list[Steps]:
    """The steps as nodes: those that read the same, and that nobody or the same steps read, in one."""
    every = list(steps)
    readers: dict[str, list[str]] = {}
    for boxes in every:
        for parent in boxes[0].parents:
            readers.setdefault(parent, []).append(boxes[0].step)
    alike: dict[object, Steps] = {}
    for boxes in every:
        first = boxes[0]
        is_mixed = len({(box.state, box.reason) for box in boxes}) > 1
        key = (first.parents, tuple(readers.get(first.step, ())), first.state, first.reason)
        alike.setdefault(first.step if is_mixed else key, []).append(boxes)
    nodes = []
    for same in alike.values():
        is_one = len(same) > APART or not readers.get(same[0][0].step)
        nodes += [same] if is_one else [[boxes] for boxes in same]
    place = {boxes[0].step: number for number, boxes in enumerate(every)}
    return sorted(nodes, key=lambda node: place[node[0][0].step])


def _node(steps: Sequence[list[Box]], order: Order) -> DagNode:
    boxes = [box for own in steps for box in own]
    state = order.most_urgent(boxes)
    first = next(box for box in boxes if box.state == state)
    names = [own[0].step for own in steps]
    room, _, title = names[0].rpartition("/")
    same = sum(box.state == state for box in boxes)
    counted = f" {same} of {len(boxes)}" if len(boxes) > len(steps) else ""
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    word, reason = order.names.get(state, state), f": {first.reason}" if first.reason else ""
    return DagNode(
        key=names[0],
        name=f"{', '.join(names[:LISTED])}: {word}{counted}{reason}",
        title=title + more,
        subtitle=f"{word}{counted}" + (f" · {room}" if room and not more else ""),
        link=first.link,
        state=state,
        parents=first.parents,
    )

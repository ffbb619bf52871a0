"""A plan as a coloured DAG, drawn as SVG: for a page, or as a file of its own.

Of a large plan it shows the steps that are not reused, and their inputs. Steps that no other step reads, and that read
the same for the same reason, are one node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from marin_assets.plan.plan import Action, Planned
from marin_assets.stages.report.dag import DagNode, draw_dag
from marin_resources.types.output import Output

DRAWN = 60
"""Nodes in the picture. More would be a picture that nobody reads."""
IMAGE_WIDTH = 1000
"""Pixels of an image, at most: Dagster cuts images that are wider than its dialogue."""
LISTED = 20
"""Names in the tooltip of a node."""

COLOURS = {
    Action.RUN: ("#fff4d6", "#b7791f"),
    Action.REUSE: ("#e6f4ea", "#2f7d4f"),
    Action.WAIT: ("#e3effc", "#2b6cb0"),
    Action.BLOCKED: ("#fde8e8", "#b83232"),
}
"""Fill and border."""
STYLE = """
.node rect { stroke-width: 1.5 }
.node text { text-anchor: middle; font-size: 13px }
.node .subtitle { font-size: 11px; fill: #4a5568 }
.edge { fill: none; stroke: #a0aec0 }
.arrow { fill: #a0aec0 }
""" + "".join(
    f".node.{action} rect{{fill:{fill};stroke:{line}}}.node.{action} circle{{fill:{line}}}"
    for action, (fill, line) in COLOURS.items()
)

Steps = list[list[Planned]]
"""The planned outputs of each of some steps."""


def picture_of(planned: Sequence[Planned], links: Mapping[Output, str]) -> str:
    """The DAG for a page, with a sentence about steps that are not drawn. `links`: the page's section on an output."""
    drawn, omitted = _drawn(planned)
    if not drawn:
        return "<p>Every step is reused.</p>" if planned else "<p>No steps.</p>"
    rest = f"<p>{omitted:,} more steps are in the list below.</p>" if omitted else ""
    return f'<div class="picture">{draw_dag([_node(steps, links) for steps in drawn])}</div>{rest}'


def image_of(planned: Sequence[Planned]) -> str:
    """The DAG as a file of its own, with its styles inside; "" if no step is to be drawn."""
    drawn, _ = _drawn(planned)
    if not drawn:
        return ""
    svg = draw_dag([_node(steps, {}) for steps in drawn])
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    assert size is not None
    scale = min(1.0, IMAGE_WIDTH / int(size[1]))
    width, height = (round(scale * int(pixels)) for pixels in size.groups())
    opening, _, rest = svg.partition(">")
    return (
        f'{opening} xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f"<style>text{{font-family:system-ui,sans-serif}}{STYLE}</style>{rest}"
    )


def _drawn(planned: Sequence[Planned]) -> tuple[list[Steps], int]:
    """The steps of each node to draw, and how many steps are left out."""
    by_step: dict[str, list[Planned]] = {}
    for item in planned:
        by_step.setdefault(item.node.name, []).append(item)
    nodes = _together(by_step.values())
    if len(nodes) > DRAWN:
        active = {name for name, items in by_step.items() if _action(items) is not Action.REUSE}
        near = {dependency.name for name in active for dependency in by_step[name][0].node.dependencies}
        nodes = [steps for steps in nodes if steps[0][0].node.name in active | near][:DRAWN]
    return nodes, len(by_step) - sum(map(len, nodes))


def _together(steps: Iterable[list[Planned]]) -> list[Steps]:
    """The steps as nodes: those that nobody reads, and that have the same inputs and reason, in one."""
    every = list(steps)
    read = {dependency.name for items in every for dependency in items[0].node.dependencies}
    nodes: dict[object, Steps] = {}
    for items in every:
        first = items[0]
        alone = first.node.name in read or len({(item.action, item.reason) for item in items}) > 1
        key = first.node.name if alone else (first.node.dependencies, first.action, first.reason)
        nodes.setdefault(key, []).append(items)
    return list(nodes.values())


def _action(items: Sequence[Planned]) -> Action:
    """The action of a step: of its outputs' actions, the one that people act on first."""
    order = (Action.BLOCKED, Action.RUN, Action.WAIT, Action.REUSE)
    return min((item.action for item in items), key=order.index)


def _node(steps: Steps, links: Mapping[Output, str]) -> DagNode:
    items = [item for outputs in steps for item in outputs]
    action = _action(items)
    first = next(item for item in items if item.action is action)
    names = [outputs[0].node.name for outputs in steps]
    room, _, title = names[0].rpartition("/")
    same = sum(item.action is action for item in items)
    counted = f" {same} of {len(items)}" if len(items) > len(steps) else ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return DagNode(
        key=names[0],
        name=f"{', '.join(names[:LISTED])}: {action}{counted}: {first.reason}",
        title=title + more,
        subtitle=f"{action}{counted}" + (f" · {room}" if room and not more else ""),
        link=links.get(first.node.output, "#"),
        state=action.value,
        parents=tuple(dependency.name for dependency in first.node.dependencies),
    )


def legend() -> str:
    """The colours, as a line of a page."""
    return f'<p class="legend">{" ".join(f"<span class={escape(action)!r}>{action}</span>" for action in Action)}</p>'

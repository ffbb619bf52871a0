"""A plan as a coloured DAG, drawn as SVG: for a page, or as a file of its own.

Of a large plan it shows the steps that are not reused, and their inputs: see `boxes.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from marin_assets.plan.plan import Action, Planned
from marin_assets.plan.render.boxes import Box, Order, nodes_to_draw
from marin_assets.stages.report.dag import draw_dag
from marin_resources.types.output import Output

IMAGE_WIDTH = 1000
"""Pixels of an image, at most: Dagster cuts images that are wider than its dialogue."""

ORDER = Order(states=(Action.BLOCKED, Action.RUN, Action.WAIT, Action.REUSE))

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


def picture_of(planned: Sequence[Planned], links: Mapping[Output, str]) -> str:
    """The DAG for a page, with a sentence about steps that are not drawn. `links`: the page's section on an output."""
    drawn, omitted = nodes_to_draw(_boxes(planned, links), ORDER)
    if not drawn:
        return "<p>Every step is reused.</p>" if planned else "<p>No steps.</p>"
    rest = f"<p>{omitted:,} more steps are in the list below.</p>" if omitted else ""
    return f'<div class="picture">{draw_dag(drawn)}</div>{rest}'


def image_of(planned: Sequence[Planned]) -> str:
    """The DAG as a file of its own, with its styles inside; "" if no step is to be drawn."""
    drawn, _ = nodes_to_draw(_boxes(planned, {}), ORDER)
    if not drawn:
        return ""
    svg = draw_dag(drawn)
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    assert size is not None
    scale = min(1.0, IMAGE_WIDTH / int(size[1]))
    width, height = (round(scale * int(pixels)) for pixels in size.groups())
    opening, _, rest = svg.replace(f' width="{size[1]}"', "", 1).partition(">")
    return (
        f'{opening} xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f"<style>text{{font-family:system-ui,sans-serif}}{STYLE}</style>{rest}"
    )


def _boxes(planned: Iterable[Planned], links: Mapping[Output, str]) -> list[Box]:
    return [
        Box(
            step=item.node.name,
            parents=tuple(dependency.name for dependency in item.node.dependencies),
            state=item.action.value,
            reason=item.reason,
            link=links.get(item.node.output, "#"),
        )
        for item in planned
    ]


def legend() -> str:
    """The colours, as a line of a page."""
    return f'<p class="legend">{" ".join(f"<span class={escape(action)!r}>{action}</span>" for action in Action)}</p>'

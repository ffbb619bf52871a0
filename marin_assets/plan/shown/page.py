"""A plan as one HTML page: a coloured DAG, and below it the groups with their reasons. No network, no script.

A plan of many steps is drawn as what is to be done and what that reads; what is reused beside it is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from marin_assets.plan.plan import Action, Planned
from marin_assets.plan.shown.groups import Group, groups_of
from marin_assets.plan.shown.text import describe_earlier, describe_expected, describe_total, summary_of
from marin_assets.stages.report.dag import DagNode, draw_dag
from marin_resources.storage.manifest.bytes_progress import readable_bytes

DRAWN = 150
"""Steps in the picture. More would be a picture that nobody reads."""
SHOWN_OUTPUTS = 200
"""Of a group, in the table below."""

COLOURS = {
    Action.RUN: ("#fff4d6", "#b7791f"),
    Action.REUSE: ("#e6f4ea", "#2f7d4f"),
    Action.WAIT: ("#e3effc", "#2b6cb0"),
    Action.BLOCKED: ("#fde8e8", "#b83232"),
}
"""Fill and border."""


def page_of(planned: Sequence[Planned], prefix: str, title: str) -> str:
    """The page."""
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>Plan: {escape(title)}</title>',
            f"<style>{_style()}</style></head><body>",
            f"<h1>Plan: {escape(title)}</h1>",
            f'<p class="sum">{escape(summary_of(planned))}</p><p class="prefix">{escape(prefix)}</p>',
            _legend(),
            picture_of(planned),
            *map(_group, groups_of(planned)),
            "</body></html>",
        ]
    )


def picture_of(planned: Sequence[Planned]) -> str:
    """The DAG of the plan's steps as SVG, with their colours; a sentence if there is nothing to draw."""
    drawn, left = _drawn(planned)
    if not drawn:
        return "<p>No steps.</p>"
    rest = f"<p>{left:,} more steps are in the list below.</p>" if left else ""
    return f'<div class="picture">{draw_dag([_node(items) for items in drawn])}</div>{rest}'


def _drawn(planned: Sequence[Planned]) -> tuple[list[list[Planned]], int]:
    """The outputs of each step to draw: all of them, or what is to be done with what it reads; how many are left."""
    by_step: dict[str, list[Planned]] = {}
    for item in planned:
        by_step.setdefault(item.node.name, []).append(item)
    if len(by_step) <= DRAWN:
        return list(by_step.values()), 0
    active = [name for name, items in by_step.items() if _action(items) is not Action.REUSE]
    near = {dependency.name for name in active for dependency in by_step[name][0].node.dependencies}
    chosen = [name for name in by_step if name in set(active) | near][:DRAWN]
    return [by_step[name] for name in chosen], len(by_step) - len(chosen)


def _action(items: Sequence[Planned]) -> Action:
    """Of a step: the action that people act on first."""
    order = (Action.BLOCKED, Action.RUN, Action.WAIT, Action.REUSE)
    return min((item.action for item in items), key=order.index)


def _node(items: Sequence[Planned]) -> DagNode:
    node, action = items[0].node, _action(items)
    room, _, title = node.name.rpartition("/")
    same = sum(item.action is action for item in items)
    counted = f" {same} of {len(items)}" if len(items) > 1 else ""
    return DagNode(
        key=node.name,
        name=f"{node.name}: {action}{counted}: {next(item.reason for item in items if item.action is action)}",
        title=title,
        subtitle=f"{action}{counted}" + (f" · {room}" if room else ""),
        link=f"#{escape(action)}",
        state=action.value,
        parents=tuple(dependency.name for dependency in node.dependencies),
    )


def _group(group: Group) -> str:
    size = f", {readable_bytes(group.bytes)}" if group.bytes else ""
    total = describe_total(group.total) if group.action is Action.RUN else ""
    rows = "".join(map(_row, group.items[:SHOWN_OUTPUTS]))
    more = len(group.items) - SHOWN_OUTPUTS
    rest = f"<p>and {more:,} more: <code>marin plan --json</code> has all.</p>" if more > 0 else ""
    return (
        f'<section id="{group.action}" class="{group.action}"><h2>{group.action} {len(group.items):,}'
        f"{escape(size)}</h2><p>{escape(group.reason)}</p><p>{escape(total)}</p>"
        f"<details{' open' if len(group.items) <= 12 else ''}><summary>outputs</summary><table>{rows}</table>{rest}"
        "</details></section>"
    )


def _row(item: Planned) -> str:
    notes = [describe_earlier(item), "" if item.expected is None else describe_expected(item.expected)]
    cells = (item.label, item.observed.path, "; ".join(filter(None, notes)))
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _legend() -> str:
    return f'<p class="legend">{" ".join(f"<span class={action.value!r}>{action}</span>" for action in Action)}</p>'


def _style() -> str:
    return STYLE + "".join(
        f".node.{action} rect{{fill:{fill};stroke:{line}}}.node.{action} circle{{fill:{line}}}"
        f".legend .{action},section.{action} h2{{background:{fill};border-left:6px solid {line};padding:2px 8px}}"
        for action, (fill, line) in COLOURS.items()
    )


STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1200px; padding: 0 1rem; color: #1a202c }
.picture { overflow-x: auto }
.node rect { stroke-width: 1.5 }
.node text { text-anchor: middle; font-size: 13px }
.node .subtitle { font-size: 11px; fill: #4a5568 }
.edge { fill: none; stroke: #a0aec0 }
.arrow { fill: #a0aec0 }
.prefix, code { font-family: ui-monospace, monospace; font-size: 13px }
.sum { font-weight: 600 }
table { border-collapse: collapse; font-size: 13px }
td { padding: 2px 12px 2px 0; vertical-align: top; overflow-wrap: anywhere }
"""

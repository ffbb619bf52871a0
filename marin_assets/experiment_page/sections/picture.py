"""The DAG of an experiment, coloured by the states of its steps.

A large experiment without anything to do is drawn by kinds of steps: those with one function, in one folder of names,
and at one depth of the DAG. So no edge leads back.
"""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.experiment_page.page_steps import URGENT, PageStep
from marin_assets.experiment_page.sums import NAMES
from marin_assets.plan.render.boxes import DRAWN, Box, Order, nodes_to_draw
from marin_assets.stages.report.dag import DagNode, draw_dag
from marin_resources.storage.output.state_summary import state_of

ORDER = Order(states=tuple(state.value for state in URGENT), names={state.value: word for state, word in NAMES.items()})


def picture_of(steps: Sequence[PageStep]) -> str:
    """The DAG as SVG, with a sentence about steps that are not drawn."""
    if not steps:
        return "<p>No steps.</p>"
    nodes, omitted = nodes_to_draw([box for step in steps for box in _boxes(step)], ORDER)
    if not nodes:
        nodes, omitted = _kinds(steps)
        rest = f"<p>and {omitted:,} more steps.</p>" if omitted else ""
        return f"<p>Steps of one kind and one depth are one box.</p>{draw_dag(nodes)}{rest}"
    rest = f"<p>{omitted:,} more steps are in the table below.</p>" if omitted else ""
    return f"{draw_dag(nodes)}{rest}"


def _boxes(step: PageStep) -> list[Box]:
    states = [state_of(observed) for observed in step.outputs.values()] or [step.state]
    link = f"#step-{step.name}"
    return [Box(step=step.name, parents=step.parents, state=state.value, link=link) for state in states]


def _kinds(steps: Sequence[PageStep]) -> tuple[list[DagNode], int]:
    """A node for each kind of step, at most `DRAWN`, and the number of steps that are left out."""
    depth: dict[str, int] = {}
    kinds: dict[tuple[int, str, str], list[PageStep]] = {}
    kind_of: dict[str, str] = {}
    for step in steps:  # inputs come first
        depth[step.name] = 1 + max((depth[parent] for parent in step.parents if parent in depth), default=-1)
        key = (depth[step.name], step.function, step.name.rpartition("/")[0])
        kind_of[step.name] = kinds.setdefault(key, [step])[0].name
        if kinds[key][0] is not step:
            kinds[key].append(step)
    shown = list(kinds.values())[:DRAWN]
    nodes = []
    for members in shown:
        first, room = members[0], members[0].name.rpartition("/")[0]
        parents = dict.fromkeys(kind_of[p] for step in members for p in step.parents if p in kind_of)
        nodes.append(
            DagNode(
                key=first.name,
                name=", ".join(step.name for step in members[:20]),
                title=first.name.rpartition("/")[2] + (f" and {len(members) - 1:,} more" if len(members) > 1 else ""),
                subtitle=NAMES[first.state] + (f" · {room}" if room else ""),
                link=f"#step-{first.name}",
                state=first.state.value,
                parents=tuple(parents),
            )
        )
    return nodes, len(steps) - sum(map(len, shown))

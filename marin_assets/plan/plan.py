"""The plan of a run: run, reuse, wait or blocked for each step, and why. It starts nothing."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from marin_assets.step.graph import Graph, Node
from marin_resources.drift.drift import Drift, describe
from marin_resources.output import Match, Observed, Output, Status
from marin_resources.ray_tpu.requirements import Lack
from marin_resources.ray_tpu.site import Site
from marin_resources.storage.output.control_files import Damage


class Action(enum.StrEnum):
    RUN = "run"
    REUSE = "reuse"
    WAIT = "wait"
    BLOCKED = "blocked"


@dataclass(frozen=True, kw_only=True)
class Planned:
    node: Node
    action: Action
    reason: str
    """A phrase: why this action."""
    observed: Observed
    drift: tuple[Drift, ...] = ()
    """Changes since a complete output was computed. They are shown and decide nothing."""
    damage: str = ""
    """One sentence about a control file of the output that cannot be used."""
    lacks: bool = False
    """Whether the step lacks something that it requires of its machine."""
    site: Site | None = None
    """The cluster of a fleet that would compute it."""


def plan(
    graph: Graph,
    observed: Mapping[Output, Observed],
    selection: Iterable[Node] | None = None,
    drift: Callable[[Node], tuple[Drift, ...]] = lambda node: (),
    damage: Callable[[Node], Damage | None] = lambda node: None,
) -> list[Planned]:
    """The action of every selected node (all if None), inputs first. A partition is a node: see `Node.at`.

    `drift` is called for reused nodes, `damage` for nodes that the run reuses or computes.
    """
    order = {node.step: place for place, node in enumerate(graph)}
    actions: dict[Output, Action] = {}
    planned = []
    for node in graph if selection is None else sorted(selection, key=lambda node: order[node.step]):
        seen = observed[node.output]
        action, reason = _decide(node, seen, observed, actions)
        damaged = damage(node) if action in (Action.RUN, Action.REUSE) and not seen.collected else None
        if damaged is not None and action is Action.RUN:
            action, reason = Action.BLOCKED if damaged.blocks else Action.REUSE, ""
        actions[node.output] = action
        drifted = drift(node) if action is Action.REUSE and not seen.collected else ()
        sentence = seen.damage or (damaged.sentence if damaged else "")
        reason = "; ".join(filter(None, (reason, describe(drifted), sentence)))
        planned.append(Planned(node=node, action=action, reason=reason, observed=seen, drift=drifted, damage=sentence))
    return planned


def refuse(planned: Iterable[Planned], lacks: Mapping[str, Lack]) -> list[Planned]:
    """The plan with what its steps lack, by step name: such a step is blocked, and so is what needs it. A lack that is
    not certain is part of the reason and blocks nothing."""
    refused: set[Output] = set()
    found = []
    for item in planned:
        lack = lacks.get(item.node.name) if item.action is Action.RUN else None
        needs = next((label for label, output in item.node.inputs.items() if output in refused), None)
        if lack is not None and not lack.certain:
            item = dataclasses.replace(item, reason=f"{item.reason}; {lack.phrase}")
        elif lack is not None or (item.action is Action.RUN and needs is not None):
            refused.add(item.node.output)
            reason = lack.phrase if lack is not None else f"needs {needs!r}, which is blocked"
            item = dataclasses.replace(item, action=Action.BLOCKED, reason=reason, lacks=lack is not None)
        found.append(item)
    return found


def _decide(
    node: Node, seen: Observed, observed: Mapping[Output, Observed], actions: Mapping[Output, Action]
) -> tuple[Action, str]:
    if seen.damage:
        return Action.BLOCKED, ""
    if seen.match is Match.OTHER:
        return Action.BLOCKED, "another version's output is stored at this path"
    if seen.done:
        return (
            Action.REUSE,
            "complete" if seen.match is Match.SAME else "complete, unverified: its record has no version",
        )
    if seen.collected:
        return Action.REUSE, "collected by marin gc, and comes back without computing"
    if seen.holder is not None:
        return Action.WAIT, f"being computed by {seen.holder.describe()}"
    for label, output in node.inputs.items():
        if actions.get(output) is Action.BLOCKED:
            return Action.BLOCKED, f"needs {label!r}, which is blocked"
        if output not in actions and (damaged := observed[output].damage):
            return Action.BLOCKED, f"needs {label!r}: {damaged}"
        if output not in actions and not (observed[output].done or observed[output].collected):
            return Action.BLOCKED, f"needs {label!r}, which is not complete and not selected"
    return Action.RUN, _why_run(node, seen, actions)


def _why_run(node: Node, seen: Observed, actions: Mapping[Output, Action]) -> str:
    resumes = ", it resumes from the files of that attempt" if node.step.resumable else ""
    if seen.status is Status.FAILED:
        error = (seen.record or {}).get("error")
        return f"its last attempt failed: {error}" if error else f"its last attempt was stopped{resumes}"
    if seen.status is Status.RUNNING:
        return f"its last attempt died{resumes}"
    # by step, so that the partitions of one have one reason
    rerun = list(dict.fromkeys(output.name for output in node.inputs.values() if actions.get(output) is Action.RUN))
    return f"new, as {', '.join(map(repr, rerun))} is" if rerun else "no output of this version yet"

"""The plan of a run: run, reuse, wait or blocked for each step, and why. It starts nothing."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from marin_assets.plan.estimates import Expected
from marin_assets.plan.reasons.causes import Why
from marin_assets.step.graph import Graph, Node
from marin_resources.drift.drift import Drift, describe
from marin_resources.ray_tpu.requirements import MissingByStep
from marin_resources.ray_tpu.site import Site
from marin_resources.storage.output.control_files import Damage
from marin_resources.types.output import Match, Observed, Output, Status, describe_adopted
from marin_resources.types.record import Record


class Action(enum.StrEnum):
    RUN = "run"
    REUSE = "reuse"
    WAIT = "wait"
    BLOCKED = "blocked"


class Kind(enum.StrEnum):
    """The kind of a reason."""

    COMPLETE = "complete"
    COLLECTED = "collected"
    """Withdrawn by `marin gc`: the run brings it back and computes nothing."""
    UNVERIFIED = "unverified"
    """Complete, by a Marin that recorded no version."""
    ADOPTED = "adopted"
    """Complete, by data that were computed elsewhere."""
    NEW = "new"
    """No output of this version, and none of an earlier one."""
    CHANGED = "changed"
    """No output of this version, and one of an earlier one."""
    REMOVED = "removed"
    """An output of this version was complete, and its folder is gone."""
    FAILED = "failed"
    STOPPED = "stopped"
    DIED = "died"
    FORCED = "forced"
    HELD = "held"
    OTHER_VERSION = "other version"
    DAMAGED = "damaged"
    INPUT_BLOCKED = "input blocked"
    INPUT_MISSING = "input missing"
    MISSING_REQUIREMENT = "lacks"


@dataclass(frozen=True, kw_only=True)
class Planned:
    node: Node
    action: Action
    kind: Kind
    reason: str
    """A phrase: why this action."""
    observed: Observed
    drift: tuple[Drift, ...] = ()
    """Changes since a complete output was computed. They are shown and decide nothing."""
    damage: str = ""
    """One sentence about a control file of the output that cannot be used."""
    made_from: str = ""
    """A phrase if a step that runs reads an adopted output."""
    missing_requirements: bool = False
    """Whether the step lacks something that it requires of its machine."""
    site: Site | None = None
    """The cluster of a fleet that would compute it."""
    why: Why | None = None
    """The changes since the newest earlier output of a step that runs."""
    expected: Expected | None = None
    """The cost of computing it, by the history of its step."""

    @property
    def label(self) -> str:
        """The name of its output: "tokenized/web[2026-01]"."""
        return self.node.output.label

    @property
    def bytes(self) -> int | None:
        """The size of a complete output; None for another, and for one of Marin's, which has no manifest."""
        return self.observed.record.manifest.bytes if self.observed.done else None


def plan(
    graph: Graph,
    observed: Mapping[Output, Observed],
    selection: Iterable[Node] | None = None,
    drift: Callable[[Node], tuple[Drift, ...]] = lambda node: (),
    damage: Callable[[Node], Damage | None] = lambda node: None,
    forced: Collection[Output] = (),
    rerun_failed: bool = True,
) -> list[Planned]:
    """The action of every selected node (all if None), inputs first. A partition is a node: see `Node.at`.

    `drift` is called for reused nodes, `damage` for nodes that the run reuses or computes. `forced` outputs run even if
    they are complete. Without `rerun_failed`, failed outputs are blocked.
    """
    order = {node.step: place for place, node in enumerate(graph)}
    actions: dict[Output, Action] = {}
    planned = []
    for node in graph if selection is None else sorted(selection, key=lambda node: order[node.step]):
        seen = observed[node.output]
        action, kind, reason = _decide(node, seen, observed, actions, node.output in forced)
        if kind is Kind.FAILED and action is Action.RUN and not rerun_failed:
            action = Action.BLOCKED
        damaged = damage(node) if action in (Action.RUN, Action.REUSE) and kind is not Kind.COLLECTED else None
        if damaged is not None and kind is Kind.FORCED and not damaged.blocks:
            damaged = None  # what a run would repair is withdrawn first
        if damaged is not None and action is Action.RUN:
            action, kind, reason = Action.BLOCKED if damaged.blocks else Action.REUSE, Kind.DAMAGED, ""
        actions[node.output] = action
        drifted = drift(node) if action is Action.REUSE and kind is not Kind.COLLECTED else ()
        again = _computed_again(node, actions, forced) if action is Action.REUSE else ""
        made_from = _made_from_adopted(node, observed) if action is Action.RUN else ""
        sentence = seen.damage or (damaged.sentence if damaged else "")
        reason = "; ".join(filter(None, (reason, describe(drifted), again, made_from, sentence)))
        planned.append(
            Planned(
                node=node,
                action=action,
                kind=kind,
                reason=reason,
                observed=seen,
                drift=drifted,
                damage=sentence,
                made_from=made_from,
            )
        )
    return planned


def refuse(planned: Iterable[Planned], missing_by_step: MissingByStep) -> list[Planned]:
    """The plan with all missing requirements of its steps, by step name: such a step is blocked, and so are its
    readers. One that is not certain is part of the reason and blocks nothing."""
    refused: set[Output] = set()
    checked = []
    for item in planned:
        missing = missing_by_step.get(item.node.name, ()) if item.action is Action.RUN else ()
        reason = "\n".join(requirement.phrase for requirement in missing)  # some end with a command
        blocks = any(requirement.certain for requirement in missing)
        needs = next((label for label, output in item.node.inputs.items() if output in refused), None)
        if missing and not blocks:
            item = dataclasses.replace(item, reason=f"{item.reason}; {reason}")
        elif blocks or (item.action is Action.RUN and needs is not None):
            refused.add(item.node.output)
            reason = reason or f"needs {needs!r}, which is blocked"
            kind = Kind.MISSING_REQUIREMENT if blocks else Kind.INPUT_BLOCKED
            item = dataclasses.replace(
                item, action=Action.BLOCKED, kind=kind, reason=reason, missing_requirements=blocks
            )
        checked.append(item)
    return checked


def _decide(
    node: Node, seen: Observed, observed: Mapping[Output, Observed], actions: Mapping[Output, Action], forced: bool
) -> tuple[Action, Kind, str]:
    if seen.damage:
        return Action.BLOCKED, Kind.DAMAGED, ""
    if seen.match is Match.OTHER:
        return Action.BLOCKED, Kind.OTHER_VERSION, "another version's output is stored at this path"
    if seen.done and not forced:
        unverified = seen.match is Match.UNVERIFIED
        state = "complete, unverified: its record has no version" if unverified else "complete"
        kind = Kind.UNVERIFIED if unverified else Kind.ADOPTED if seen.adopted else Kind.COMPLETE
        return Action.REUSE, kind, ", ".join(filter(None, (state, describe_adopted(seen.record))))
    if seen.collected and not forced:
        return Action.REUSE, Kind.COLLECTED, "collected by marin gc, and comes back without computing"
    if seen.holder is not None:
        return Action.WAIT, Kind.HELD, f"being computed by {seen.holder.describe()}"
    for label, output in node.inputs.items():
        if actions.get(output) is Action.BLOCKED:
            return Action.BLOCKED, Kind.INPUT_BLOCKED, f"needs {label!r}, which is blocked"
        if output not in actions and (damaged := observed[output].damage):
            return Action.BLOCKED, Kind.INPUT_BLOCKED, f"needs {label!r}: {damaged}"
        if output not in actions and not (observed[output].done or observed[output].collected):
            return Action.BLOCKED, Kind.INPUT_MISSING, f"needs {label!r}, which is not complete and not selected"
    kind, reason = _why_run(node, seen, actions)
    return Action.RUN, *((Kind.FORCED, "forced") if seen.done or seen.collected else (kind, reason))


def _made_from_adopted(node: Node, observed: Mapping[Output, Observed]) -> str:
    """A phrase if an input of a node that runs is adopted."""
    adopted = [f"{label!r}, {describe_adopted(record)}" for label, record in _adopted_records(node, observed)]
    return f"made from {'; '.join(adopted)}" if adopted else ""


def _adopted_records(node: Node, observed: Mapping[Output, Observed]) -> Iterator[tuple[str, Record]]:
    """The labels and records of the inputs that are adopted."""
    for label, output in node.inputs.items():
        seen = observed.get(output)
        if seen is not None and seen.adopted is not None:
            yield label, seen.record


def _why_run(node: Node, seen: Observed, actions: Mapping[Output, Action]) -> tuple[Kind, str]:
    resumes = ", it resumes from the files of that attempt" if node.step.resumable else ""
    if seen.status is Status.FAILED:
        error = seen.record.error
        if error:
            return Kind.FAILED, f"its last attempt failed: {error}"
        return Kind.STOPPED, f"its last attempt was stopped{resumes}"
    if seen.status is Status.RUNNING:
        return Kind.DIED, f"its last attempt died{resumes}"
    # by step, so that the partitions of one have one reason
    rerun = list(dict.fromkeys(output.name for output in node.inputs.values() if actions.get(output) is Action.RUN))
    return Kind.NEW, f"new, as {', '.join(map(repr, rerun))} is" if rerun else "no output of this version yet"


def _computed_again(node: Node, actions: Mapping[Output, Action], forced: Collection[Output]) -> str:
    """A phrase if a forced input is computed again: the output stays, and its input is then another one."""
    again = [label for label, output in node.inputs.items() if output in forced and actions.get(output) is Action.RUN]
    return f"its input {', '.join(map(repr, again))} is computed again, so it may drift" if again else ""

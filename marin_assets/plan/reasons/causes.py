"""The reasons why steps are of another version: the fields that changed since the newest earlier output of each.

In:  nodes that run or are complete, and the complete outputs of the prefix.
Out: for each node its root causes: the fields that differ, in the step itself or in its inputs, in turn.

An earlier output is a complete one of the same name and another version. A record of it holds its whole version, with
its inputs; one far above the raw data is a name and a hash, whose own record is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.plan.reasons.differences import Differences, FieldChange, differences
from marin_assets.plan.reasons.read_inputs import Dependency, Waits, is_certain, name_of, path_of, waits_of
from marin_assets.step.graph import Node
from marin_resources.storage.completion.markers import Mark
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.types.record import Record

MOST_CAUSES = 50


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A change that gave a step, and all that is computed from it, another version."""

    step: str
    change: FieldChange | None
    """None: the earlier version of this step is not recorded, so its fields cannot be compared."""

    def describe(self) -> str:
        """A phrase: "optimizer.lr: 0.003 -> 0.001"."""
        return self.change.describe() if self.change else "its earlier version is not recorded"


@dataclass(frozen=True, kw_only=True)
class Why:
    """The reasons why a step has another version than its newest earlier output."""

    earlier: Mark
    own: tuple[FieldChange, ...]
    inputs: tuple[str, ...]
    """Names of its inputs that are of another version."""
    causes: tuple[Cause, ...]
    """The root causes: its own fields first, then those of its inputs."""


class Causes:
    """The root causes of the nodes of one plan. Each pair of versions is compared once."""

    def __init__(self, complete: CompleteOutputs) -> None:
        self._complete = complete
        self._known: dict[tuple[str, Node], tuple[Cause, ...]] = {}
        self._recorded: dict[str, Record] = {}
        self._waits: dict[Node, Waits] = {}

    def of(self, nodes: Sequence[Node]) -> dict[Node, Why]:
        """The reasons of each of these nodes for its new version. A node without an earlier output is left out."""
        earlier = {node: mark for node in nodes if (mark := self._newest_earlier(node)) is not None}
        records = self._complete.records(earlier.values())
        return {node: self._why(node, mark, records.get(mark)) for node, mark in earlier.items()}

    def _newest_earlier(self, node: Node) -> Mark | None:
        """The newest complete output of another version; of a node that is complete, the newest before it."""
        marks = self._complete.by_name.get(node.name, ())
        own = next((mark for mark in marks if mark.is_of(node.output)), None)
        return next(
            (
                mark
                for mark in marks
                if not mark.is_of(node.output) and (own is None or mark.finished_s <= own.finished_s)
            ),
            None,
        )

    def _why(self, node: Node, mark: Mark, record: Record | None) -> Why:
        was = record.version if record is not None else None
        if record is None or not was:
            return Why(earlier=mark, own=(), inputs=(), causes=(Cause(step=node.name, change=None),))
        self._recorded[path_of(was)] = record
        changed = self._differences(was, node)
        causes = self._causes(was, node)
        return Why(
            earlier=mark, own=changed.fields, inputs=tuple(change.name for change in changed.inputs), causes=causes
        )

    def _causes(self, was: Dependency, node: Node) -> tuple[Cause, ...]:
        """The root causes of one pair of versions. No recursion: a chain may have thousands of steps."""
        stack: list[tuple[Dependency, Node]] = [(was, node)]
        while stack:
            was, node = stack[-1]
            key = path_of(was), node
            if key in self._known:
                stack.pop()
                continue
            version = self._version(was)
            if version is None:
                self._known[key] = (Cause(step=node.name, change=None),)
                continue
            changed = self._differences(version, node)
            above = _changed_inputs(changed, node)
            missing = [
                (dependency, source) for dependency, source in above if (path_of(dependency), source) not in self._known
            ]
            if missing:
                stack.extend(missing)
                continue
            own = [Cause(step=node.name, change=change) for change in changed.fields]
            theirs = (cause for dependency, source in above for cause in self._known[path_of(dependency), source])
            self._known[key] = _first_of_each([*own, *theirs])
        return self._known[key]

    def _differences(self, was: Mapping[str, Any], node: Node) -> Differences:
        config = None if is_certain(was) else self._record(was).config
        if node not in self._waits:
            self._waits[node] = waits_of(node.step)
        return differences(was, node.version.as_dict(), was_config=config, now_waits=self._waits[node])

    def _version(self, dependency: Dependency) -> Mapping[str, Any] | None:
        """The whole version of an input; None if no record of it is left."""
        return self._record(dependency).version or None if isinstance(dependency, str) else dependency

    def _record(self, dependency: Dependency) -> Record:
        """The record of a version; empty if none is left."""
        path = path_of(dependency)
        if path not in self._recorded:
            name, version = name_of(dependency), path[-6:]
            marks = [mark for mark in self._complete.by_name.get(name, ()) if mark.version == version]
            records = self._complete.records(marks[:1])
            self._recorded[path] = next(iter(records.values()), Record())
        return self._recorded[path]


def _first_of_each(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """Each change once, and at most `MOST_CAUSES`: of thousands of changed steps nobody reads all."""
    distinct = {(cause.step, cause.change.field if cause.change else None): cause for cause in causes}
    return tuple(distinct.values())[:MOST_CAUSES]


def _changed_inputs(changed: Differences, node: Node) -> list[tuple[Dependency, Node]]:
    by_name = {other.name: other for other in (*node.dependencies, *node.pseudo_dependencies)}
    return [(change.was, by_name[change.name]) for change in changed.inputs]


def describe_causes(causes: Iterable[Cause], of: str, most: int = 3) -> str:
    """The root causes as a phrase, seen from the step `of`: its own fields bare, those of others with their step."""
    by_step: dict[str, list[str]] = {}
    for cause in causes:
        by_step.setdefault(cause.step, []).append(cause.describe())
    phrases = []
    for step, changes in by_step.items():
        more = [f"{len(changes) - most} more fields"] if len(changes) > most else []
        listed = ", ".join([*changes[:most], *more])
        phrases.append(listed if step == of else f"{step!r} changed ({listed})")
    more = [f"{len(phrases) - most} more steps changed"] if len(phrases) > most else []
    return "; ".join([*phrases[:most], *more])

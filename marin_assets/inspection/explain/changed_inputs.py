"""The inputs of another version, and their inputs, down to those that were changed themselves.

In:  two versions of a step.   Out: its inputs of another version, each once, with what differs in each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.plan.reasons.differences import Differences, differences
from marin_assets.plan.reasons.read_inputs import Dependency, path_of

ReadVersion = Callable[[str], Mapping[str, Any] | None]
"""The whole version of "name-hash"; None if no record has it."""


@dataclass(frozen=True, kw_only=True)
class ChangedInput:
    """One input, direct or not, that is of another version."""

    name: str
    was: str
    """Path of the input before: "name-hash"."""
    now: str
    depth: int
    """1 for an input of the step itself."""
    differences: Differences | None
    """None: no record has one of the two versions any more."""

    @property
    def is_root(self) -> bool:
        """Whether its own fields have changed."""
        return self.differences is not None and bool(self.differences.fields)


def changed_inputs(own: Differences, read_version: ReadVersion) -> list[ChangedInput]:
    """The inputs that differ, those nearest to the step first."""
    changed: dict[str, ChangedInput] = {}
    waiting = deque((change, 1) for change in own.inputs)
    while waiting:
        change, depth = waiting.popleft()
        if change.name in changed:
            continue
        was, now = _whole(change.was, read_version), _whole(change.now, read_version)
        differ = None if was is None or now is None else differences(was, now)
        changed[change.name] = ChangedInput(
            name=change.name, was=path_of(change.was), now=path_of(change.now), depth=depth, differences=differ
        )
        if differ is not None:
            waiting.extend((below, depth + 1) for below in differ.inputs)
    return list(changed.values())


def _whole(dependency: Dependency, read_version: ReadVersion) -> Mapping[str, Any] | None:
    return read_version(dependency) if isinstance(dependency, str) else dependency

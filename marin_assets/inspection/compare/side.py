"""One side of a comparison: steps by name, each with its whole version and the path of its output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.plan.reasons.read_inputs import Dependency, name_of, path_of
from marin_resources.storage.paths import join

EVALUATES = ".stages.evaluate"
"""Part of the reference of each function of the evaluating stages."""


@dataclass(frozen=True, kw_only=True)
class SideStep:
    name: str
    version: Mapping[str, Any] | None
    """Whole version, as a record holds it. None: not known, as Marin has records without."""
    path: str
    """Path of its output."""
    function: str = ""
    """Reference of the function, "module:name"; "" if it is not known."""

    @property
    def hash(self) -> str:
        return path_of(self.version)[-6:] if self.version is not None else "?"

    @property
    def evaluates(self) -> bool:
        return EVALUATES in self.function


@dataclass(frozen=True, kw_only=True)
class Side:
    title: str
    """Description of the side: "the experiment 'quickstart'"."""
    steps: Mapping[str, SideStep]
    """Steps by name, inputs before readers."""
    note: str = ""
    """A sentence about the unknown parts of the side."""

    def sinks(self) -> list[str]:
        """The names of the steps that no other one reads."""
        read = {name for step in self.steps.values() for name in map(name_of, inputs_of(step.version))}
        return [name for name in self.steps if name not in read]


def side_of(title: str, steps: Iterable[SideStep], note: str = "") -> Side:
    """The side with these steps, in order."""
    return Side(title=title, steps=in_order({step.name: step for step in steps}), note=note)


def inputs_of(version: Mapping[str, Any] | None) -> Sequence[Dependency]:
    if version is None:
        return ()
    return [*(version.get("dependencies") or ()), *(version.get("pseudo_dependencies") or ())]


def with_ancestors(
    steps: Iterable[SideStep], prefix: str, read_version: Callable[[str], Mapping[str, Any] | None]
) -> list[SideStep]:
    """These steps, and those that their versions name as inputs, direct or not. `read_version` gets "name-hash"."""
    reached = {step.name: step for step in steps}
    waiting = list(reached.values())
    while waiting:
        for dependency in inputs_of(waiting.pop().version):
            name, relative = name_of(dependency), path_of(dependency)
            if name not in reached:
                version = read_version(relative) if isinstance(dependency, str) else dependency
                reached[name] = SideStep(name=name, version=version, path=join(prefix, relative))
                waiting.append(reached[name])
    return list(reached.values())


def in_order(steps: Mapping[str, SideStep]) -> dict[str, SideStep]:
    """The steps, inputs before readers."""
    ordered: dict[str, SideStep] = {}
    stack = [(name, False) for name in reversed(list(steps))]
    begun: set[str] = set()
    while stack:
        name, inputs_done = stack.pop()
        if inputs_done:
            ordered[name] = steps[name]
        elif name in steps and name not in begun:
            begun.add(name)
            stack.append((name, True))
            stack.extend((name_of(dependency), False) for dependency in reversed(inputs_of(steps[name].version)))
    return ordered

"""The requirements of a step for the machine that runs it, and the lacks of that machine, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from marin_resources.hardware.resources import Resources
from marin_resources.wire.config_json import decode, encode
from marin_resources.wire.task import Task

NAMED_STEPS = 3


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """The requirements of one step."""

    step: str
    extras: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    """Names of environment variables."""
    packages: tuple[str, ...] = ()
    """Requirements beyond the extras, such as "lxml>=5"."""
    resources: Resources = Resources()

    @staticmethod
    def of(task: Task) -> Requirements:
        """The requirements of the task's step."""
        lists = {"extras": task.extras, "env": task.env, "packages": task.packages}
        return Requirements(step=task.output.label, resources=task.resources, **lists)

    @property
    def plain(self) -> bool:
        """Whether any process that has Marin meets them."""
        return self == Requirements(step=self.step)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, of the requirements alone that are set."""
        lists = {"extras": self.extras, "env": self.env, "packages": self.packages}
        shown: dict[str, Any] = {name: list(values) for name, values in lists.items() if values}
        return shown if self.resources == Resources() else {**shown, "resources": encode(self.resources)}

    @staticmethod
    def from_dict(step: str, fields: Mapping[str, Any]) -> Requirements:
        """The inverse of `to_dict`."""
        lists = {name: tuple(fields.get(name, ())) for name in ("extras", "env", "packages")}
        resources = decode(fields["resources"]) if "resources" in fields else Resources()
        return Requirements(step=step, resources=resources, **lists)


@dataclass(frozen=True, kw_only=True)
class MissingRequirement:
    """A requirement that is not met: "needs jax, which is not installed", and the remedy."""

    verb: str
    """In the singular: "needs"."""
    what: str
    """The object of the verb, without a full stop."""
    remedy: str
    """A whole sentence."""
    certain: bool = True
    """False for a resource that a cluster may still get: a step waits for it."""

    @property
    def phrase(self) -> str:
        """Without the step: "needs jax, which is not installed. Run: …"."""
        return f"{self.verb} {self.what}. {self.remedy}"


MissingByStep: TypeAlias = Mapping[str, tuple[MissingRequirement, ...]]
"""Step name -> all that it lacks. A step that lacks nothing is not in it."""


def merge_missing(*several: MissingByStep) -> dict[str, tuple[MissingRequirement, ...]]:
    """Return all that each step lacks, in this order, each thing once."""
    together: dict[str, tuple[MissingRequirement, ...]] = {}
    for missing_by_step in several:
        for step, missing in missing_by_step.items():
            together[step] = tuple(dict.fromkeys((*together.get(step, ()), *missing)))
    return {step: missing for step, missing in together.items() if missing}


def describe_missing(missing_by_step: MissingByStep) -> list[str]:
    """Return one sentence for each thing that steps lack: it names up to three of them."""
    steps: dict[MissingRequirement, list[str]] = {}
    for step, missing in missing_by_step.items():
        for requirement in missing:
            steps.setdefault(requirement, []).append(step)
    return [_sentence(requirement, names) for requirement, names in steps.items()]


def _sentence(requirement: MissingRequirement, steps: Sequence[str]) -> str:
    if len(steps) == 1:
        return f"Step {steps[0]!r} {requirement.phrase}"
    named = [repr(step) for step in steps[:NAMED_STEPS]]
    named += [f"{len(steps) - NAMED_STEPS} more"] * (len(steps) > NAMED_STEPS)
    verb = requirement.verb.removesuffix("s")
    return f"Steps {', '.join(named[:-1])} and {named[-1]} {verb} {requirement.what}. {requirement.remedy}"

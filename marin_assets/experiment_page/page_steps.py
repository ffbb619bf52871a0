"""The steps of a page: names, versions, inputs, and the state of the outputs of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from marin_assets.plan.reasons.causes import Why
from marin_assets.step.origin import NONE, Origins
from marin_resources.drift.drift import Drift
from marin_resources.storage.output.state_summary import State, state_of
from marin_resources.types.output import Observed
from marin_resources.types.record import Record

URGENT = (State.FAILED, State.DEAD, State.BLOCKED, State.RUNNING, State.MISSING, State.COMPLETE)
"""States in the order in which people act on them."""


def everything(path: str) -> bool:
    """The rule of a page that may read at every path."""
    return True


@dataclass(frozen=True, kw_only=True)
class PageStep:
    """One step with its outputs."""

    name: str
    version: str
    """Six hex digits; "" if it is not known."""
    parents: tuple[str, ...]
    """Names of the steps that it reads."""
    function: str
    """Reference of its function, "module:name"; "" if it is not known."""
    description: str = ""
    outputs: Mapping[str | None, Observed]
    """Key of a partition -> its output; None -> that of a step without partitions."""
    is_partitioned: bool = False
    origins: Origins = field(default_factory=lambda: NONE)
    """The data sets that it is computed from."""
    variables: tuple[str, ...] = ()
    """Environment variables that it declares as secrets."""
    why: Why | None = None
    """The changes since its newest earlier output."""
    path: str = ""
    """The folder of its output, or of its partitions."""
    drift: Mapping[str | None, Sequence[Drift]] = field(default_factory=dict)
    """Key of a partition, or None -> changes since the output was computed that its version does not cover."""
    past: Record | None = None
    """The newest record of an earlier computation of this very version, if its content was another."""

    @cached_property
    def states(self) -> Mapping[State, int]:
        """The number of outputs in each state; a step whose partitions are not known is missing."""
        return Counter(map(state_of, self.outputs.values())) or Counter({State.MISSING: 1})

    @property
    def state(self) -> State:
        """The most urgent of the states of its outputs."""
        return min(self.states, key=URGENT.index)

    @property
    def records(self) -> Sequence[Record]:
        """The records of its outputs that have one."""
        return [observed.record for observed in self.outputs.values() if observed.record.to_dict()]

    @property
    def whole(self) -> Observed | None:
        """The output of a step without partitions."""
        return self.outputs.get(None)

    def label(self, key: str | None) -> str:
        """The name of one of its outputs."""
        return self.name if key is None else f"{self.name}[{key}]"


@dataclass(frozen=True, kw_only=True)
class PageSteps:
    """An experiment: its steps, inputs before readers."""

    title: str
    prefix: str
    steps: Sequence[PageStep]
    commit: str = ""
    """The commit in the record of the experiment; "" for an experiment of the code."""
    users: tuple[str, ...] = ()
    """Names of persons and machines in the record of the experiment, which no page has."""
    shows: Callable[[str], bool] = everything
    """Whether the page may read at a path."""

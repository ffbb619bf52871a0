"""The state of one Dagster run in its process. The resource `ray_tpu` creates it for the run and drops it after.

interruption       why the run ends early           the executor writes it, the steps that it cancels read it
detach_on          when to leave jobs running       the resource writes it
jobs               jobs that the run waits for      steps write them, sensors read them from the run's tags
manifest_digests   digests of observed outputs      steps write them, steps that read those outputs compare them
recent             states that were just read       the plan and steps write them, steps use them in place of a look
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar

import dagster as dg

from marin_resources.dagster_fixes.executor.interruption import Interruption
from marin_resources.orchestrator.run_jobs import RunJobs
from marin_resources.types.output import Observed, Output

RECENT_S = 10.0
"""Age up to which the state of an output is used without another look. A claim comes seconds to hours after a look in
any case, and it is the claim that decides."""
_planned: ContextVar[Mapping[Output, Observed] | None] = ContextVar("planned", default=None)


@contextlib.contextmanager
def planned_states(observed: Mapping[Output, Observed]) -> Iterator[None]:
    """Give the runs that begin within this context the states that their plan has read."""
    token = _planned.set(observed)
    try:
        yield
    finally:
        _planned.reset(token)


class RunState:
    def __init__(self, instance: dg.DagsterInstance, run_id: str) -> None:
        self.jobs = RunJobs(instance, run_id)
        self.interruption: Interruption | None = None
        self.detach_on: frozenset[Interruption] = frozenset()
        """Interruptions after which the compute keeps running, if it can outlive the run's process."""
        self.manifest_digests: dict[Output, str | None] = {}
        """None for an output without a manifest."""
        self._states = dict(_planned.get() or {})

    def remember(self, observed: Mapping[Output, Observed]) -> None:
        """Keep these states, and of earlier ones those that are recent."""
        self._states = {**self.recent(self._states), **observed}

    def recent(self, outputs: Iterable[Output]) -> dict[Output, Observed]:
        """The states of those of the outputs that were read a moment ago."""
        states, since_s = self._states, time.monotonic() - RECENT_S
        return {o: states[o] for o in outputs if o in states and states[o].read_at_s >= since_s}

    @property
    def should_detach(self) -> bool:
        """Whether interrupted steps leave their compute running."""
        return self.interruption in self.detach_on

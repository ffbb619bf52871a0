"""The state of one Dagster run in its process. The resource `ray_tpu` creates it for the run and drops it after.

interruption       why the run ends early           the executor writes it, the steps that it cancels read it
detach_on          when to leave jobs running       the resource writes it
jobs               jobs that the run waits for      steps write them, sensors read them from the run's tags
manifest_digests   digests of observed outputs      steps write them, steps that read those outputs compare them
"""

from __future__ import annotations

import enum

import dagster as dg

from marin_resources.orchestrator.run_jobs import RunJobs
from marin_resources.output import Output


class Interruption(enum.Enum):
    """Why a run ends before its steps do. The value begins a sentence of the run's log."""

    TERMINATED = "Terminated on request"
    """In the UI, or with Dagster's API."""
    CTRL_C = "Interrupted by Ctrl-C"
    SIGTERM = "This process was told to stop (SIGTERM)"
    """As in a redeployment: the work is still wanted."""


class RunState:
    def __init__(self, instance: dg.DagsterInstance, run_id: str) -> None:
        self.jobs = RunJobs(instance, run_id)
        self.interruption: Interruption | None = None
        self.detach_on: frozenset[Interruption] = frozenset()
        """Interruptions after which the compute keeps running, if it can outlive the run's process."""
        self.manifest_digests: dict[Output, str | None] = {}
        """None for an output without a manifest."""

    @property
    def should_detach(self) -> bool:
        """Whether interrupted steps leave their compute running."""
        return self.interruption in self.detach_on

"""RayTPUResource: the compute of a Dagster deployment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr

from marin_resources.dagster_fixes.executor.interruption import Interruption
from marin_resources.dagster_fixes.run_launcher import is_in_terminal, is_over
from marin_resources.orchestrator.log_positions import LogPositions
from marin_resources.orchestrator.run_state import RunState
from marin_resources.ray_tpu.backend import Backend
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.cluster.settings_from_env import is_on_cluster
from marin_resources.ray_tpu.local.backend import LocalBackend


class RayTPUResource(dg.ConfigurableResource):
    """Runs tasks on Ray: as jobs of a cluster, or in a local Ray that starts with the first task and ends with the
    run. It also carries the state of the run."""

    cluster: str = Field(
        default="",
        description="The Ray dashboard's URL, 'local' for that of `marin cluster local up`, or names of clusters in "
        "the catalogue, between commas; MARIN_CLUSTER if empty.",
    )
    cpus: int | None = Field(default=None, description="CPUs that the local Ray may use; all of them if not set.")
    lost_worker_budget: int = Field(
        default=3, description="How often a step is tried again after its worker died; a failing function is not."
    )
    partitions_at_once: int = Field(
        default=64, gt=0, description="How many partitions of one step a run computes or waits for at the same time."
    )
    ctrl_c_stops_jobs: bool = Field(
        default=False,
        description="Whether Ctrl-C ends jobs on the cluster too, and not only the waiting; in a terminal it does.",
    )
    _backend: Any = PrivateAttr(default=None)
    _run_state: Any = PrivateAttr(default=None)

    @property
    def run_state(self) -> RunState:
        """The state of the run that this resource was initialised for."""
        state: RunState = self._run_state
        return state

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        if context.run is not None and context.instance is not None:
            self._run_state = RunState(context.instance, context.run.run_id)

    @property
    def on_cluster(self) -> bool:
        """Whether steps run on a cluster. Raises SettingError for an invalid one."""
        return is_on_cluster(self.cluster or None)

    def backend(
        self, run: dg.DagsterRun, instance: dg.DagsterInstance, log: Callable[[str], None], prefix: str
    ) -> Backend:
        """The back end for outputs below `prefix`, created by the first call. Raises SettingError for an invalid
        cluster."""
        if self._backend is None:
            if not self.on_cluster:
                self._backend = LocalBackend(cpus=self.cpus)
            else:
                stops = self.ctrl_c_stops_jobs or is_in_terminal(run)
                on_ctrl_c = () if stops else (Interruption.CTRL_C,)
                self.run_state.detach_on = frozenset({Interruption.SIGTERM, *on_ctrl_c})
                self._backend = _cluster_backend(self.cluster or None, prefix, run, instance, log)
        return self._backend

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        if self._backend is not None:
            self._backend.shutdown()
            self._backend = None


def _cluster_backend(
    cluster: str | None, prefix: str, run: dg.DagsterRun, instance: dg.DagsterInstance, log: Callable[[str], None]
) -> Backend:
    """The back end for the jobs of one run. The late imports break a weight: a local run needs no cluster client."""
    from marin_resources.ray_tpu.cluster.backend import ClusterBackend
    from marin_resources.ray_tpu.fleet.backend import backend_at

    def run_is_over(run_id: str) -> bool:
        other = instance.get_run_by_id(run_id)
        return other is not None and is_over(other)

    positions = LogPositions(instance, run.run_id)

    def backend_of(settings: ClusterSettings) -> ClusterBackend:
        return ClusterBackend(settings, run_id=run.run_id, report=log, positions=positions, is_over=run_is_over)

    return backend_at(cluster, prefix, backend_of)

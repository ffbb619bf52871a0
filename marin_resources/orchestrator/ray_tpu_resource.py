"""RayTPUResource: what a Dagster deployment configures of its compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr

from marin_resources.orchestrator.interruption import Interruption, forget_run, leave_on
from marin_resources.orchestrator.log_positions import LogPositions
from marin_resources.orchestrator.run_launcher import is_over
from marin_resources.ray_tpu.backend import Backend
from marin_resources.ray_tpu.cluster.settings import ClusterSettings
from marin_resources.ray_tpu.cluster.settings_from_env import settings_from_env
from marin_resources.ray_tpu.local import LocalBackend


class RayTPUResource(dg.ConfigurableResource):
    """Runs tasks on Ray: on a cluster, as jobs; without one, in a local Ray that starts with the first task and ends
    with the run."""

    cluster: str = Field(
        default="",
        description="The Ray dashboard's URL, or 'local' for that of `marin cluster local up`; MARIN_CLUSTER if empty.",
    )
    cpus: int | None = Field(default=None, description="CPUs that the local Ray may use; all of them if not set.")
    lost_worker_budget: int = Field(
        default=3, description="How often a step is tried again after its worker died; a failing function is not."
    )
    ctrl_c_stops_jobs: bool = Field(
        default=False, description="Whether Ctrl-C ends jobs on the cluster too, and not only the waiting for them."
    )
    _backend: Any = PrivateAttr(default=None)

    def backend(self, run: dg.DagsterRun, instance: dg.DagsterInstance, say: Callable[[str], None]) -> Backend:
        """The back end, made on first use. Raises SettingError for a cluster that cannot be meant."""
        if self._backend is None:
            settings = settings_from_env(self.cluster or None)
            if settings is None:
                self._backend = LocalBackend(cpus=self.cpus)
            else:
                left_by_ctrl_c = () if self.ctrl_c_stops_jobs else (Interruption.CTRL_C,)
                leave_on(run.run_id, {Interruption.SIGTERM, *left_by_ctrl_c})
                self._backend = _cluster_backend(settings, run, instance, say)
        return self._backend

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        if self._backend is not None:
            self._backend.shutdown()
            self._backend = None
        if context.run_id is not None:
            forget_run(context.run_id)


def _cluster_backend(
    settings: ClusterSettings, run: dg.DagsterRun, instance: dg.DagsterInstance, say: Callable[[str], None]
) -> Backend:
    """The back end for the jobs of one run. The late import breaks a weight: a local run needs no cluster client."""
    from marin_resources.ray_tpu.cluster.backend import ClusterBackend

    def run_is_over(run_id: str) -> bool:
        other = instance.get_run_by_id(run_id)
        return other is not None and is_over(other)

    return ClusterBackend(
        settings, run_id=run.run_id, report=say, positions=LogPositions(instance), is_over=run_is_over
    )

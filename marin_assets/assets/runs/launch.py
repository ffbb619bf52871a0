"""Hand steps to the queue of the deployment: its daemon runs them in the code location that it serves.

A run is written to Dagster's database, so this works on every machine that reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from marin_assets.assets.runs.run import create_run
from marin_assets.step.graph import Graph, Node
from marin_resources.configuration.settings import SettingError
from marin_resources.dagster_fixes.databases import open_instance
from marin_resources.dagster_fixes.run_attribution import TAG
from marin_resources.host.process import user_name
from marin_resources.orchestrator.daemon_health import is_daemon_healthy
from marin_resources.types.location_job import LocationJob

QUEUE_DAEMON = "QUEUED_RUN_COORDINATOR"


def queue_run(
    name: str, graph: Graph, nodes: Sequence[Node], of_job: LocationJob, *, max_concurrent: int | None = None
) -> tuple[str, bool]:
    """Put a run of `nodes` into the queue. Return its id, and whether a daemon is running that will launch it.

    Raises SettingError for an instance without a queue.
    """
    with open_instance() as instance:
        _require_queue(instance)
        _, run = create_run(
            instance,
            name,
            graph,
            nodes,
            of_job=of_job,
            max_concurrent=max_concurrent,
            tags_of=lambda run_id: launched_by(),
        )
        instance.report_dagster_event(dg.DagsterEvent.job_enqueue(run), run_id=run.run_id)
        return run.run_id, is_daemon_healthy(instance, QUEUE_DAEMON)


def launched_by() -> dict[str, str]:
    """The tag of the runs that this user launches."""
    user = user_name()
    return {TAG: user} if user else {}


def _require_queue(instance: dg.DagsterInstance) -> None:
    if not isinstance(instance.run_coordinator, dg.QueuedRunCoordinator):
        raise SettingError(
            f"The run coordinator of this Dagster instance is {type(instance.run_coordinator).__name__}, which has no "
            "queue. Leave out --launch, or set the coordinator of dagster.yaml to one with a queue."
        )

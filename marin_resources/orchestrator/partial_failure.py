"""A step of several partitions of which some failed: the steps that read it go on with those that are complete.

Dagster executes no step below a failed one, so one bad partition of a hundred would hold up all steps below, for all
partitions, and show them as failed. The failure of a step that made some of its partitions is marked. For the order of
steps the executor then takes it as done; the run fails all the same. Below, a partition whose input is absent fails
with a sentence that names the input.
"""

from __future__ import annotations

import dagster as dg
from dagster import DagsterEvent
from dagster._core.execution.plan.active import ActiveExecution
from dagster._core.execution.plan.outputs import StepOutputHandle
from dagster._core.execution.plan.plan import ExecutionPlan

COMPLETE = "complete_partitions"
"""In a failure's metadata: how many partitions of the step are complete."""


def marked_as_partial(complete: int) -> dict[str, dg.MetadataValue]:
    """The metadata that mark a failure as partial."""
    return {COMPLETE: dg.MetadataValue.int(complete)}


def go_on_below(active: ActiveExecution, plan: ExecutionPlan) -> None:
    """Let the steps below a partial failure be executed."""
    handle = active.handle_event

    def handle_event(event: DagsterEvent) -> None:
        if not _is_partial(event):
            handle(event)
            return
        key = str(event.step_key)
        for output in plan.get_step_by_key(key).step_outputs:
            active.mark_step_produced_output(StepOutputHandle(key, output.name))
        active.mark_success(key)
        if active._instance_concurrency_context is not None:
            active._instance_concurrency_context.free_step(key)

    active.handle_event = handle_event  # type: ignore[method-assign, assignment]


def _is_partial(event: DagsterEvent) -> bool:
    if not event.is_step_failure:
        return False
    data = event.step_failure_data.user_failure_data
    return data is not None and COMPLETE in (data.metadata or {})

"""A step of several partitions of which some failed: the steps that read it continue with those that are complete.

Dagster executes no step below a failed one, so one bad partition of a hundred would hold up all steps below, for all
partitions, and show them as failed. The failure of a step that computed some of its partitions is marked. For the order
of steps the executor then takes it as done; the run fails all the same. Below, a partition whose input is absent fails
with a sentence that names the input.

Seen with Dagster 1.13.27: dagster-io/dagster#15761 and dagster-io/dagster#17836. A step is the unit of its plan.
"""

from __future__ import annotations

import dagster as dg

COMPLETE = "complete_partitions"
"""In a failure's metadata: the number of complete partitions of the step."""


def partial_failure_metadata(complete: int) -> dict[str, dg.MetadataValue]:
    """The metadata that mark a failure as partial."""
    return {COMPLETE: dg.MetadataValue.int(complete)}


def is_partial(event: dg.DagsterEvent) -> bool:
    """Whether an event is the failure of a step of which some partitions are complete."""
    if not event.is_step_failure:
        return False
    data = event.step_failure_data.user_failure_data
    return data is not None and COMPLETE in (data.metadata or {})

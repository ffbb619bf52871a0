"""Lost runs of a sensor that Dagster does not launch again: the sensor requests them again.

Dagster's daemon looks once at a lost run, within seconds. If the code server is away then, as after the machine was
started again, it gives the run up for ever, with all of its tries left. If the run is not marked as failed yet, it
overlooks it. Without `run_retries` in the dagster.yaml it launches none again. A run on whose machine no Ray runs is
lost too, though Dagster sees that one of its steps failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from marin_resources.orchestrator.lost_runs import is_marked_lost
from marin_resources.orchestrator.run_jobs import TAG as JOBS
from marin_sensors.runs.in_progress import SENSOR
from marin_sensors.runs.partition_ranges import range_of, range_tags

RETRIES = 3
"""Retries of a lost run by Dagster."""
AT_MOST = 10
"""Requests of a sensor for a lost run, and for that one if it is lost too."""
LOOKED_BACK = timedelta(days=7)
LEFT_TO_DAGSTER = timedelta(minutes=2)
"""Time in which Dagster launches a lost run again, if it does."""
LOST, REQUEST = "marin/lost_run", "marin/request"
"""Tags of a run that is requested again: the id of the lost one, and the number of the request, from 1."""


def tags_of(sensor: str) -> dict[str, str]:
    """Tags of a sensor's runs. Dagster tries one again whose process was lost, or never began; not if a step failed."""
    return {
        SENSOR: sensor,
        "dagster/max_retries": str(RETRIES),
        "dagster/retry_on_asset_or_op_failure": "false",
    }


def request_again(
    context: dg.SensorEvaluationContext,
    sensor: str,
    partitions: str,
    keys: Sequence[dg.AssetKey],
    tags: Mapping[str, str] | None = None,
) -> list[dg.RunRequest]:
    """Requests of the sensor's runs of the last week that were lost and not launched again: each once, oldest first.

    partitions   the name of the set: runs of partitions that have been deleted from it stay lost
    keys         the sensor's assets
    tags         other tags that a run has, or it is not requested
    """
    existing = set(context.instance.get_dynamic_partitions(partitions))
    requests = []
    for run in _lost(context.instance, {**tags_of(sensor), **(tags or {})}):
        ends, number = range_of(run), int(run.tags.get(REQUEST, "0")) + 1
        if number > AT_MOST or not ends or not existing.issuperset(ends):
            continue
        first, last = ends
        phrase = first if first == last else f"{first}...{last}"
        context.log.warning(
            f"The run {run.run_id[:8]} of {phrase} was lost, and Dagster has not launched it again. It is requested "
            f"again ({number} of {AT_MOST} times)."
        )
        own = {tag: value for tag, value in run.tags.items() if tag.startswith("marin/") and not tag.startswith(JOBS)}
        requests.append(
            dg.RunRequest(
                run_key=f"{sensor}: {phrase} after {run.run_id}",
                asset_selection=list(keys),
                partition_key=first if first == last else None,
                tags={
                    **own,
                    **tags_of(sensor),
                    **({} if first == last else range_tags(ends)),
                    LOST: run.run_id,
                    REQUEST: str(number),
                },
            )
        )
    return requests


def _lost(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> list[dg.DagsterRun]:
    """Runs with these tags that were lost, and that neither Dagster nor a sensor has tried again."""
    now = datetime.now(UTC)
    failed = dg.RunsFilter(  # of one tag alone, and without `updated_before`: with those SQLite takes minutes
        statuses=[dg.DagsterRunStatus.FAILURE], tags={SENSOR: tags[SENSOR]}, created_after=now - LOOKED_BACK
    )
    records = instance.get_run_records(failed, ascending=True)
    runs = [record.dagster_run for record in records if record.update_timestamp <= now - LEFT_TO_DAGSTER]
    lost = [run for run in runs if tags.items() <= run.tags.items() and _is_lost(run)]
    retried = dg.RunsFilter(tags={LOST: [run.run_id for run in lost]}) if lost else None
    tried = {run.tags[LOST] for run in instance.get_runs(retried)} if retried else set()
    return [run for run in lost if run.run_id not in tried]


def _is_lost(run: dg.DagsterRun) -> bool:
    """Whether a failed run was lost, and Dagster has not launched it again, with tries left."""
    was_tried = "dagster/auto_retry_run_id" in run.tags
    has_failed = run.tags.get("dagster/failure_reason") == "STEP_FAILURE" and not is_marked_lost(run)
    return not was_tried and not has_failed and int(run.tags.get("dagster/retry_number", "0")) < RETRIES

"""Runs of a sensor that were lost: Dagster launches them again, and the sensor requests again what Dagster gives up.

Dagster's daemon tries a lost run again a few seconds later, once it sees it. If the code server is away then, as after
the machine was started again, it gives the run up for ever, with all of its tries left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from marin_sensors.runs.in_progress import SENSOR
from marin_sensors.runs.partition_ranges import range_of, range_tags

RETRIES = 3
"""Of a lost run by Dagster."""
AT_MOST = 10
"""Requests of a sensor for a run that was given up, and for that one if it is given up too."""
LOOKED_BACK = timedelta(days=7)
LOST, REQUEST = "marin/lost_run", "marin/request"
"""Tags of a run that is requested again: the lost one, and how many requests there were before."""


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
    """Requests of the sensor's runs of the last week that Dagster has given up: each once, the oldest first.

    partitions   the name of the set: runs of partitions that have been deleted from it stay lost
    keys         the sensor's assets
    tags         other tags that a run has, or it is not requested
    """
    there = set(context.instance.get_dynamic_partitions(partitions))
    requests = []
    for run in _given_up(context.instance, {**tags_of(sensor), **(tags or {})}):
        some, number = range_of(run), int(run.tags.get(REQUEST, "0")) + 1
        if number > AT_MOST or not some or not there.issuperset(some):
            continue
        first, last = some
        phrase = first if first == last else f"{first}...{last}"
        context.log.warning(
            f"The run {run.run_id[:8]} of {phrase} was lost, and Dagster has given it up. It is requested again "
            f"({number} of {AT_MOST} times)."
        )
        own = {tag: value for tag, value in run.tags.items() if tag.startswith("marin/")}
        requests.append(
            dg.RunRequest(
                run_key=f"{sensor}: {phrase} after {run.run_id}",
                asset_selection=list(keys),
                partition_key=first if first == last else None,
                tags={
                    **own,
                    **tags_of(sensor),
                    **({} if first == last else range_tags(some)),
                    LOST: run.run_id,
                    REQUEST: str(number),
                },
            )
        )
    return requests


def _given_up(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> Iterator[dg.DagsterRun]:
    """Runs with these tags that were lost, will not be launched again, and were not requested again."""
    failed = dg.RunsFilter(
        statuses=[dg.DagsterRunStatus.FAILURE],
        tags={**tags, "dagster/will_retry": "false"},
        created_after=datetime.now(UTC) - LOOKED_BACK,
    )
    for run in reversed(instance.get_runs(failed)):
        if run.tags.get("dagster/failure_reason") == "STEP_FAILURE":
            continue
        if int(run.tags.get("dagster/retry_number", "0")) >= RETRIES:
            continue
        if not instance.get_run_ids(dg.RunsFilter(tags={LOST: run.run_id}), limit=1):
            yield run

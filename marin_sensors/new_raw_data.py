"""A sensor on a place where raw data arrive in deliveries: each complete delivery becomes a partition, and its runs.

    from marin_sensors.deliveries.completeness import Marked
    from marin_sensors.new_raw_data import new_raw_data

    crawls = new_raw_data(
        "crawls",
        "gs://crawls/{drop}/*.warc.gz",
        partitions="deliveries",                 # dynamic("deliveries") of the steps
        assets=["deliveries/raw", "deliveries/tokenized"],
        complete=Marked("_SUCCESS"),
    )

Each delivery is taken once, also if the daemon is killed at any moment: a run's key is that of its delivery, and
Dagster launches no key twice. A run that is lost, and that Dagster does not launch again, is requested again. What
happens to a delivery later (a file that is late, rewritten or gone) is an observation on the page of the first asset;
with `on_change="revise"` the delivery is taken again, as the partition "<delivery>@2".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import dagster as dg

from marin_resources.configuration.settings import default_prefix, normalize_prefix
from marin_resources.types.errors import MarinError
from marin_sensors.deliveries.completeness import Completeness, Settled
from marin_sensors.deliveries.memory import Memory
from marin_sensors.deliveries.pattern import DeliveryPattern
from marin_sensors.deliveries.tick import Cursor, Taken, Watch, look
from marin_sensors.runs import lost_run_retries as lost
from marin_sensors.runs import requests as run_requests
from marin_sensors.runs.in_progress import SENSOR, in_progress
from marin_sensors.runs.partition_ranges import range_tags, ranges_of

SETTLING_S = 600.0
PREFIX = "{prefix}"
"""At the beginning of a path: stands for the prefix of the outputs, as in the form of a step's `this_partition`."""
BUDGET_S = 8.0
"""Seconds that a tick lists files: with what it does besides, a tick takes ten at most."""


def new_raw_data(
    name: str,
    path: str,
    *,
    partitions: str,
    assets: Sequence[str],
    complete: Completeness | None = None,
    on_change: Literal["report", "revise"] = "report",
    every_s: int = 60,
    at_most: int = 20,
    runs: Literal["each", "together"] = "each",
    recheck_s: float = 3600,
    start: bool = False,
) -> dg.SensorDefinition:
    """A sensor named `name` on the deliveries at `path`, which has `{drop}` in it: see `DeliveryPattern`.

    path         "{prefix}/inbox/{drop}/*.gz" is a place under the prefix of the outputs
    partitions   the name of the dynamic set of the assets: a delivery's name is added to it
    assets       keys of the assets that are materialized at the new partition
    complete     when a delivery is complete; by default when it has not changed for ten minutes
    on_change    what happens if a delivery changes after it was taken: "report", or "revise", which takes it again
    every_s      seconds between two ticks
    at_most      deliveries that one tick takes
    runs         "each": a run for each delivery. "together": one for all that a tick takes, and while that is in
    progress
                 nothing is taken. For many small deliveries, as a run has a price of its own
    recheck_s    seconds in which each delivery that was taken is listed once, for changes
    start        whether it runs without being switched on. Its runs cost what the assets cost

    Raises PatternError for a path without `{drop}`, ValueError for no asset and for another `on_change` or `runs`.
    """
    keys = run_requests.keys_of(name, assets)
    if on_change not in ("report", "revise"):
        raise ValueError(f"The sensor {name!r} has on_change={on_change!r}, expected 'report' or 'revise'.")
    if runs not in ("each", "together"):
        raise ValueError(f"The sensor {name!r} has runs={runs!r}, expected 'each' or 'together'.")
    rule = complete or Settled(SETTLING_S)
    watch = Watch(
        pattern=DeliveryPattern(path),
        rule=rule,
        revises=on_change == "revise",
        at_most=at_most,
        recheck_s=recheck_s,
        budget_s=BUDGET_S,
    )

    def request(taken: Taken) -> dg.RunRequest:
        return dg.RunRequest(
            run_key=f"{name}: {taken.key}",
            asset_selection=keys,
            partition_key=taken.key,
            tags={"marin/drop": taken.delivery, **lost.tags_of(name)},
        )

    @dg.sensor(
        name=name,
        asset_selection=dg.AssetSelection.assets(*keys),
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING if start else dg.DefaultSensorStatus.STOPPED,
        description=(
            f"Looks at {path}. A delivery is complete {rule}. Then its name is added to the set {partitions!r}, and "
            f"{', '.join(assets)} are materialized for it. A delivery that changes later is "
            f"{'taken again' if watch.revises else 'reported'}."
        ),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        if wrong := run_requests.misfit(context, keys, partitions):
            return dg.SkipReason(wrong)
        memory = Memory(normalize_prefix(default_prefix()), name)
        is_busy = runs == "together" and in_progress(context.instance, SENSOR, name)
        now = replace(watch, waits="the run of earlier ones is in progress") if is_busy else watch
        try:
            now = replace(now, pattern=_placed(watch.pattern))
            partition_keys = context.instance.get_dynamic_partitions(partitions)
            tick = look(now, memory, Cursor.parse(context.cursor), time.time(), partition_keys)
        except MarinError as error:
            return dg.SkipReason(str(error))
        run_requests.log(context, tick)
        again = lost.request_again(context, name, partitions, keys)
        requested = list(
            _runs_together(context, name, partitions, keys, tick.taken)
            if runs == "together"
            else map(request, tick.taken)
        )
        return run_requests.result_of(tick, tick.cursor.text(), partitions, keys, [*again, *requested])

    return sensor


def _placed(pattern: DeliveryPattern) -> DeliveryPattern:
    """The pattern with the prefix of this deployment in it. Raises SettingError and PatternError."""
    if not pattern.path.startswith(PREFIX):
        return pattern
    return DeliveryPattern(normalize_prefix(default_prefix()).rstrip("/") + pattern.path.removeprefix(PREFIX))


def _runs_together(
    context: dg.SensorEvaluationContext, name: str, partitions: str, keys: Sequence[dg.AssetKey], taken: Sequence[Taken]
) -> Iterator[dg.RunRequest]:
    """A run for each range of what was taken; several if the set had some of the keys before, or a run takes fewer."""
    assert context.repository_def is not None
    existing = context.instance.get_dynamic_partitions(partitions)
    partition_keys = list(dict.fromkeys([*existing, *(delivery.key for delivery in taken)]))
    taken_keys = {delivery.key for delivery in taken}
    backwards = {key: tuple(keys) for key in reversed(partition_keys) if key in taken_keys}
    for chunk, _ in reversed(list(ranges_of(context.repository_def.asset_graph, partition_keys, backwards))):
        yield dg.RunRequest(
            run_key=f"{name}: {chunk[0]}...{chunk[-1]}",
            asset_selection=list(keys),
            tags={**range_tags(chunk), **lost.tags_of(name)},
        )

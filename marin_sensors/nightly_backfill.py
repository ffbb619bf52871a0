"""A schedule that materializes, every night, the partitions that are not complete: the newest first, within caps.

    from marin_sensors.nightly_backfill import nightly_backfill

    nightly = nightly_backfill(
        "nightly", ["deliveries/raw", "deliveries/filtered"], cron="0 2 * * *", cap=200, cap_per_pool={"gpu_H100": 20}
    )

It looks at the store, not at Dagster's history: a partition is requested if its output at the step's present version is
not complete, so also after a change of the step. It is left out while somebody computes it, and after it has failed
`max_failures` times in a row. While runs of the last night are in progress, nothing is added. *Test schedule* in
Dagster's UI shows what it would request, and requests nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from marin_resources.orchestrator.io_manager import output_of_asset
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.storage.output.attempts import failures_in_a_row
from marin_resources.storage.output.state_summary import UNFINISHED, State, states_of_partitions
from marin_resources.storage.output.store import Store
from marin_resources.types.errors import MarinError
from marin_resources.types.location_job import ALL_ASSETS
from marin_sensors.runs.in_progress import SCHEDULE, in_progress
from marin_sensors.runs.partition_ranges import key_of_dimension, range_tags, ranges_of


@dataclass(frozen=True, kw_only=True)
class Caps:
    """The limits of one night."""

    partitions: int
    in_pool: Mapping[str, int]
    """Pool -> partitions that need an asset of it."""
    failures: int
    """Failures in a row of a partition that is still taken, and one."""


@dataclass(frozen=True, kw_only=True)
class Night:
    """The partitions to materialize."""

    keys: Sequence[str]
    """All keys of the set, the oldest first."""
    partitions: Mapping[str, tuple[dg.AssetKey, ...]]
    """Partition key -> the assets that lack it, the newest first."""
    remaining: int
    """Partitions beyond the caps."""
    failing: Mapping[str, int]
    """Partition key -> failures in a row, of those that are left out for them."""


def nightly_backfill(
    name: str,
    assets: Sequence[str],
    cron: str,
    *,
    cap: int = 100,
    cap_per_pool: Mapping[str, int] | None = None,
    max_failures: int = 3,
    timezone: str = "UTC",
    start: bool = False,
) -> dg.ScheduleDefinition:
    """A schedule named `name` that materializes the missing partitions of assets that have one set of partitions.

    assets         keys of the assets, such as "deliveries/tokenized"
    cron           when: "0 2 * * *" is every night at two, in the time zone
    cap            partitions of one night at most
    cap_per_pool   likewise, of those with an asset of a pool: "gpu_H100" is that of gpu("H100"), "tpu_v5p_32" that
                   of tpu("v5p-32")
    max_failures   a partition that has failed so often in a row is left out, until it is made by hand
    start          whether it runs without being switched on. Its runs cost what the assets cost
    """
    if not assets or isinstance(assets, str):
        raise ValueError(
            f"The schedule {name!r} has assets={assets!r}, expected a list of asset keys: ['deliveries/raw']."
        )
    keys = [dg.AssetKey(asset.split("/")) for asset in assets]

    @dg.schedule(
        name=name,
        cron_schedule=cron,
        execution_timezone=timezone,
        job_name=ALL_ASSETS,  # with a misspelled asset, a job of its own keeps all from loading
        default_status=dg.DefaultScheduleStatus.RUNNING if start else dg.DefaultScheduleStatus.STOPPED,
        description=(
            f"Materializes the partitions of {', '.join(assets)} that are not complete: the newest first, at most "
            f"{cap} a night, none that has failed {max_failures} times in a row, and nothing while its last runs are "
            "in progress."
        ),
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> Sequence[dg.RunRequest] | dg.SkipReason:
        if running := in_progress(context.instance, SCHEDULE, name):
            return dg.SkipReason(f"{running} runs of the last time are in progress, so nothing is added.")
        try:
            caps = Caps(partitions=cap, in_pool=cap_per_pool or {}, failures=max_failures)
            night = night_of(context, StoreResource().store(), keys, caps)
        except (MarinError, dg.Failure) as error:
            return dg.SkipReason(str(error))
        for partition, failures in night.failing.items():
            context.log.warning(f"{partition!r} is left out: it has failed {failures} times in a row.")
        if not night.partitions and night.remaining:
            return dg.SkipReason(
                f"{night.remaining} partitions are not complete, and the caps let none of them be made."
            )
        if not night.partitions:
            left_out = f" {len(night.failing)} that fail again and again are left out." if night.failing else ""
            return dg.SkipReason(f"All partitions are complete or being computed.{left_out}")
        context.log.info(
            f"{len(night.partitions)} partitions, {night.remaining} more another night: {', '.join(night.partitions)}"
        )
        return list(_requests(context, night, name))

    return schedule


def night_of(context: dg.ScheduleEvaluationContext, store: Store, keys: Sequence[dg.AssetKey], caps: Caps) -> Night:
    """The partitions to request. Raises UnavailableError and ControlFileError; dg.Failure for an asset without path."""
    partitions, pools = _partitions(context, keys), _pools(context, keys, caps)
    partition_keys = partitions.get_partition_keys(
        current_time=context.scheduled_execution_time, dynamic_partitions_store=context.instance
    )
    existing = frozenset(partition_keys)
    lacking: dict[str, list[dg.AssetKey]] = {}
    failing: dict[str, int] = {}
    for key in keys:
        whole = output_of_asset(context.repository_def.asset_graph, key)
        for partition_state in states_of_partitions(store, whole, partition_keys):
            if partition_state.state not in UNFINISHED or partition_state.key not in existing:
                continue
            failures = 0
            if partition_state.state is State.FAILED:
                failures = failures_in_a_row(store.locate(whole.at(partition_state.key)), caps.failures)
            if failures >= caps.failures:
                failing[partition_state.key] = failures
            else:
                lacking.setdefault(partition_state.key, []).append(key)
    newest = [key for key in _newest_first(partitions, partition_keys) if key in lacking and key not in failing]
    chosen: dict[str, tuple[dg.AssetKey, ...]] = {}
    taken = Counter[str]()
    for partition in newest:
        used = {pool for key in lacking[partition] for pool in pools[key]}
        if len(chosen) < caps.partitions and all(taken[pool] < caps.in_pool.get(pool, math.inf) for pool in used):
            chosen[partition] = tuple(lacking[partition])
            taken.update(used)
    return Night(keys=partition_keys, partitions=chosen, remaining=len(newest) - len(chosen), failing=failing)


def _pools(
    context: dg.ScheduleEvaluationContext, keys: Sequence[dg.AssetKey], caps: Caps
) -> dict[dg.AssetKey, frozenset[str]]:
    """The pools of each asset. Raises dg.Failure for a cap of a pool that none of them is in."""
    pools = {key: frozenset(context.repository_def.asset_graph.get(key).pools or ()) for key in keys}
    names = sorted(frozenset[str]().union(*pools.values()))
    for pool in caps.in_pool:
        if pool not in names:
            raise dg.Failure(
                f"The schedule has a cap for the pool {pool!r}, expected one of its assets' pools: {names}. Correct it."
            )
    return pools


def _partitions(context: dg.ScheduleEvaluationContext, keys: Sequence[dg.AssetKey]) -> dg.PartitionsDefinition:
    """The set that all assets have. Raises dg.Failure for assets without one set."""
    for key in keys:
        if not context.repository_def.asset_graph.has(key):
            raise dg.Failure(f"Asset {key.to_user_string()!r} is not in the code location. Correct the schedule.")
    sets = {key: context.repository_def.asset_graph.get(key).partitions_def for key in keys}
    first, partitions = next(iter(sets.items()))
    for key, other in sets.items():
        if other is None:
            raise dg.Failure(f"Asset {key.to_user_string()!r} has no partitions. Leave it out of the schedule.")
        if other != partitions:
            raise dg.Failure(
                f"Assets {first.to_user_string()!r} and {key.to_user_string()!r} have different partitions. Make a "
                "schedule for each."
            )
    assert partitions is not None
    return partitions


def _newest_first(partitions: dg.PartitionsDefinition, partition_keys: Sequence[str]) -> Sequence[str]:
    """The keys by age: of a product with windows of time, those of the last window first."""
    backwards = list(reversed(partition_keys))
    dimensions = partitions.partitions_defs if isinstance(partitions, dg.MultiPartitionsDefinition) else ()
    in_time = (isinstance(dimension.partitions_def, dg.TimeWindowPartitionsDefinition) for dimension in dimensions)
    number = next((number for number, is_time in enumerate(in_time) if is_time), None)
    if number is None:
        return backwards
    return sorted(backwards, key=lambda key: key_of_dimension(key, number), reverse=True)  # keys of windows sort so


def _requests(context: dg.ScheduleEvaluationContext, night: Night, name: str) -> Iterator[dg.RunRequest]:
    """A run for each range of keys that lack the same assets: the one with the newest key first."""
    at = f"{context.scheduled_execution_time:%Y-%m-%d %H:%M}"
    graph = context.repository_def.asset_graph
    age = {key: number for number, key in enumerate(night.partitions)}
    backwards = {key: night.partitions[key] for key in reversed(night.keys) if key in age}
    ranges = sorted(ranges_of(graph, night.keys, backwards), key=lambda chunk: min(age[key] for key in chunk[0]))
    for chunk, assets in ranges:
        yield dg.RunRequest(
            run_key=f"{name} {at}: {chunk[0]}...{chunk[-1]}",
            asset_selection=list(assets),
            tags={SCHEDULE: name, **range_tags(chunk)},
        )

"""A sensor on assets whose definition has another version than what was materialized last, partition by partition.

    from marin_sensors.unsynced import unsynced

    changed = unsynced()

It reports them on its page, and materializes those whose step has the tag "marin/cheap", inputs first:
Step(…, tags={"marin/cheap": "true"}). Each tick looks at everything again, so a tick that is lost changes nothing. An
output that somebody else has completed at the new version, in the same store, is not unsynced.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from marin_resources.orchestrator.io_manager import output_of_asset
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.storage.output.attempts import failures_in_a_row
from marin_resources.storage.output.state_summary import State, states_of_partitions
from marin_resources.storage.output.store import Store
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Output
from marin_sensors.queries.materialized_versions import steps_of, version_materialized
from marin_sensors.runs.in_progress import SENSOR, in_progress
from marin_sensors.webhook.reported_findings import Reported

CHEAP = "marin/cheap"
DATA_VERSION = "dagster/data_version"
"""A tag of a materialization, which Dagster looks up by partition. Of a step with partitions it is the version."""
SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Unsynced:
    """An asset whose definition has another version than what was materialized."""

    key: dg.AssetKey
    output: Output
    """The output at the new version; of an asset with partitions, the folder of all."""
    partitions: tuple[str, ...] = ()
    """Those that are unsynced; none for an asset without partitions."""
    is_cheap: bool = False
    parents: frozenset[dg.AssetKey] = field(default_factory=frozenset)

    def describe(self) -> str:
        """As a phrase: "two_steps/stats (now a1b2c3)", "deliveries/raw (now a1b2c3, 12 partitions)"."""
        count = len(self.partitions)
        suffix = f", {count} partition{'s' * (count != 1)}" if count else ""
        return f"{self.key.to_user_string()} (now {self.output.version}{suffix})"


def unsynced(
    name: str = "unsynced", *, every_s: int = 600, at_most: int = 20, max_failures: int = 3, start: bool = True
) -> dg.SensorDefinition:
    """A sensor named `name` on all steps of the code location.

    every_s        seconds between two ticks
    at_most        runs that one tick requests, of steps with the tag "marin/cheap"
    max_failures   an output that has failed so often in a row is not requested again
    start          whether it runs without being switched on
    """

    @dg.sensor(
        name=name,
        asset_selection=dg.AssetSelection.tag(CHEAP, "true"),  # those that it makes: the UI marks them as automated
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING if start else dg.DefaultSensorStatus.STOPPED,
        description=(
            "Reports assets whose definition has another version than what was materialized last. Those whose step has "
            f"the tag {CHEAP} are materialized, inputs first."
        ),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        assert context.repository_def is not None
        try:
            store = StoreResource().store()
            stale = find_unsynced(context.repository_def.asset_graph, context.instance, store)
            running = in_progress(context.instance, SENSOR, name)
            requests = [] if running else list(_requests(stale, store, name, max_failures))[:at_most]
        except MarinError as error:
            return dg.SkipReason(str(error))
        for asset in stale:
            context.log.warning(f"Unsynced: {asset.describe()}")
        phrases = {asset.describe(): asset.describe() for asset in stale}
        reported = Reported.parse(context.cursor, context.log.warning).after(phrases, time.time())
        summary = _summary(stale, "its last runs are in progress" if running else "")
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else f"{summary} {reported.sentence()}",
            cursor=reported.text(),
        )

    return sensor


def find_unsynced(graph: Any, instance: dg.DagsterInstance, store: Store) -> list[Unsynced]:
    """The unsynced assets, inputs first. Raises UnavailableError and ControlFileError."""
    keys = steps_of(graph)
    versions = version_materialized(instance, [key for key in keys if graph.get(key).partitions_def is None])
    changed = {
        key: output_of_asset(graph, key) for key, version in versions.items() if version != graph.get(key).code_version
    }
    looked = store.look(changed.values())
    stale = []
    for key in keys:
        node, output = graph.get(key), output_of_asset(graph, key)
        partitions: tuple[str, ...] = ()
        if node.partitions_def is not None:
            partitions = _changed_partitions(instance, store, key, output, node.partitions_def)
        if partitions or (key in changed and not looked[changed[key]].done):
            stale.append(
                Unsynced(
                    key=key,
                    output=output,
                    partitions=partitions,
                    is_cheap=node.tags.get(CHEAP) == "true",
                    parents=frozenset(node.parent_keys),
                )
            )
    return stale


def _changed_partitions(
    instance: dg.DagsterInstance, store: Store, key: dg.AssetKey, whole: Output, partitions: dg.PartitionsDefinition
) -> tuple[str, ...]:
    """The partitions whose last materialization here is of another version, and that are not complete at this one;
    without those that the set no longer has, which Dagster refuses to make."""
    tags: Mapping[str, Mapping[str, str]] = instance.event_log_storage.get_latest_tags_by_partition(
        key, dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION]
    )
    changed = [
        partition
        for partition, partition_tags in tags.items()
        if partition_tags.get(DATA_VERSION) not in (None, whole.version)
    ]
    if not changed:
        return ()
    existing = frozenset(partitions.get_partition_keys(dynamic_partitions_store=instance))
    changed = [partition for partition in changed if partition in existing]
    states = {
        partition_state.key: partition_state.state for partition_state in states_of_partitions(store, whole, changed)
    }
    return tuple(partition for partition in changed if states[partition] is not State.COMPLETE)


def _requests(stale: Sequence[Unsynced], store: Store, name: str, max_failures: int) -> Iterator[dg.RunRequest]:
    """A run for each cheap output whose inputs are up to date. Those below it follow in a later tick."""
    waiting = {asset.key for asset in stale}
    for asset in stale:
        if not asset.is_cheap or asset.parents & waiting:
            continue
        for partition in asset.partitions or (None,):
            output = asset.output if partition is None else asset.output.at(partition)
            if failures_in_a_row(store.locate(output), max_failures) < max_failures:
                yield dg.RunRequest(asset_selection=[asset.key], partition_key=partition, tags={SENSOR: name})


def _summary(stale: Sequence[Unsynced], waits: str) -> str:
    if not stale:
        return "Every asset that was materialized has the version of its definition."
    more = f" and {len(stale) - SHOWN} more" if len(stale) > SHOWN else ""
    cheap = sum(asset.is_cheap for asset in stale)
    then = f" Nothing is requested: {waits}." if waits and cheap else ""
    return f"{len(stale)} unsynced: {', '.join(asset.describe() for asset in stale[:SHOWN])}{more}.{then}"

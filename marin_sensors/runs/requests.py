"""The results of a look at deliveries, for Dagster: partitions to add, runs to request, changes to show."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import dagster as dg

from marin_resources.types.partition_key import FoldersOfKeys, PartitionKeyError
from marin_sensors.deliveries.tick import Tick


def keys_of(sensor: str, assets: Sequence[str]) -> list[dg.AssetKey]:
    """The keys of the assets that a sensor materializes. Raises ValueError for none, and for a text."""
    if not assets or isinstance(assets, str):
        raise ValueError(
            f"The sensor {sensor!r} has assets={assets!r}, expected a list of asset keys: ['deliveries/raw']."
        )
    return [dg.AssetKey(asset.split("/")) for asset in assets]


def misfit(context: dg.SensorEvaluationContext, keys: Sequence[dg.AssetKey], partitions: str) -> str:
    """Why the assets cannot be materialized for a delivery, in one sentence; empty if they can."""
    for key in keys:
        if sentence := unknown(context, key):
            return sentence
        assert context.repository_def is not None
        asset_partitions = context.repository_def.asset_graph.get(key).partitions_def
        if not isinstance(asset_partitions, dg.DynamicPartitionsDefinition) or asset_partitions.name != partitions:
            return (
                f"The sensor adds partitions to the set {partitions!r}, and its asset {key.to_user_string()!r} has "
                f"other partitions. Give its step partitions=dynamic({partitions!r})."
            )
    return ""


def refused(context: dg.SensorEvaluationContext, partitions: str, key: str) -> str:
    """Why the set cannot have the key, in one sentence; empty if it can."""
    try:
        FoldersOfKeys(context.instance.get_dynamic_partitions(partitions)).require_free(key, f"the set {partitions!r}")
    except PartitionKeyError as error:
        return str(error)
    return ""


def unknown(context: dg.SensorEvaluationContext, key: dg.AssetKey) -> str:
    """A sentence for an asset that the code location does not have; empty if it has the asset."""
    assert context.repository_def is not None
    graph, name = context.repository_def.asset_graph, key.to_user_string()
    if graph.has(key):
        return ""
    names = [asset.to_user_string() for asset in graph.materializable_asset_keys]
    close = difflib.get_close_matches(name, names, n=1)
    meant = f"Did you mean {close[0]!r}?" if close else "Correct the sensor."
    return f"The sensor's asset {name!r} is not in the code location. {meant}"


def result_of(
    tick: Tick,
    cursor: str,
    partitions: str,
    keys: Sequence[dg.AssetKey],
    runs: Sequence[dg.RunRequest],
) -> dg.SensorResult:
    """The partitions of what was taken, with their runs, and what has changed."""
    added = [dg.AddDynamicPartitionsRequest(partitions, [taken.key for taken in tick.taken])] if tick.taken else []
    return dg.SensorResult(
        run_requests=runs,
        skip_reason=None if runs else tick.summary,
        cursor=cursor,
        dynamic_partitions_requests=added,
        asset_events=[
            dg.AssetObservation(keys[0], partition=key, description=sentence) for key, sentence in tick.changes.items()
        ],
    )


def log(context: dg.SensorEvaluationContext, tick: Tick) -> None:
    """Log what a look has found in the log of the tick."""
    for sentence in (*tick.changes.values(), *tick.refused):
        context.log.warning(sentence)
    context.log.info(tick.summary)

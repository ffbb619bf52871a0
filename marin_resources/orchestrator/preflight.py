"""Checks before the first step of a run: it has steps, and this machine, or the cluster, has everything they require.

A run that lacks something for one of its steps ends at once with a sentence, before hours of other steps. An output
that is complete, or computed by another run, requires nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from dagster import AssetKey, DagsterError, DagsterRun, PartitionKeyRange

from marin_resources.configuration.settings import SettingError
from marin_resources.dagster_fixes.partition_keys import (
    PARTITION_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    dynamic_partitions_of,
)
from marin_resources.orchestrator.io_manager import NAME, output_of_asset
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.ray_tpu.backend import missing_requirements
from marin_resources.ray_tpu.requirements import MissingByStep, Requirements, describe_missing
from marin_resources.types.errors import MarinError
from marin_resources.types.location_job import ALL_ASSETS
from marin_resources.types.output import Output

REQUIRES = "marin/requires"
"""Definition metadata: `Requirements.to_dict()` of a step that requires anything."""
T = TypeVar("T")


class NothingSelectedError(MarinError, DagsterError):
    """A run of the implicit asset job selects nothing, which Dagster takes for all assets of the code location."""


class UnmetRequirementsError(MarinError, DagsterError):
    """Steps of the run lack something that they require: one sentence for each thing."""


def refuse_empty_selection(run: DagsterRun) -> None:
    """Raise NothingSelectedError for a selection that matched no asset. "Materialize all" selects each by its name."""
    if run.job_name.startswith(ALL_ASSETS) and not (run.asset_selection or run.asset_check_selection):
        raise NothingSelectedError(
            f"The run {run.run_id!r} selects no asset, and Dagster would materialize all assets of all experiments. "
            "Nothing was computed. Correct the name in the selection: the page of an asset shows its key."
        )


def refuse_unmet(job_context: Any, execution_plan: Any) -> None:
    """Raise UnmetRequirementsError if a step that the run will compute lacks something. A lack that is not certain is
    a warning in the run's log."""
    ray_tpu, storage = resource_of(job_context, RayTPUResource), resource_of(job_context, StoreResource)
    layer = job_context.job_def.asset_layer
    keys = {layer.get(key).metadata[NAME]: key for key in _steps_with_requirements(job_context, execution_plan)}
    if ray_tpu is None or storage is None or not keys:
        return
    required = [Requirements.from_dict(name, layer.get(key).metadata[REQUIRES].value) for name, key in keys.items()]
    outputs = {name: _outputs(job_context, key) for name, key in keys.items()}
    try:
        run, instance = job_context.dagster_run, job_context.instance
        backend = ray_tpu.backend(run, instance, job_context.log.info, storage.home)
        missing_by_step = missing_requirements(
            backend, required, lambda names: _needless(storage, {name: outputs[name] for name in names})
        )
    except (SettingError, OSError):  # of the cluster or the store: each step meets it again, and has a sentence for it
        return
    for sentence in describe_missing(_of_certainty(missing_by_step, certain=False)):
        job_context.log.warning(sentence)
    sentences = describe_missing(_of_certainty(missing_by_step, certain=True))
    if sentences:
        raise UnmetRequirementsError("\n".join([*sentences, "Nothing was computed."]))


def _of_certainty(missing_by_step: MissingByStep, *, certain: bool) -> MissingByStep:
    return {
        step: tuple(requirement for requirement in missing if requirement.certain is certain)
        for step, missing in missing_by_step.items()
    }


def _outputs(job_context: Any, key: AssetKey) -> list[Output]:
    """The asset's output; of an asset with partitions, those of the run."""
    output = output_of_asset(job_context.job_def.asset_layer, key)
    partitions = job_context.job_def.asset_layer.get(key).partitions_def
    tags = job_context.dagster_run.tags
    if partitions is None:
        return [output]
    if (only := tags.get(PARTITION_TAG)) is not None:
        return [output.at(only)]
    key_range = PartitionKeyRange(tags[RANGE_START_TAG], tags[RANGE_END_TAG])
    with dynamic_partitions_of(job_context.instance):
        return [output.at(str(partition)) for partition in partitions.get_partition_keys_in_range(key_range)]


def _needless(storage: StoreResource, outputs: Mapping[str, Sequence[Output]]) -> set[str]:
    observed = storage.store().look(output for several in outputs.values() for output in several)
    return {
        name
        for name, several in outputs.items()
        if all(seen.done or seen.holder is not None or seen.damage for seen in map(observed.__getitem__, several))
    }


def _steps_with_requirements(job_context: Any, execution_plan: Any) -> Iterator[AssetKey]:
    layer = job_context.job_def.asset_layer
    for step in execution_plan.get_steps_to_execute_in_topo_order():
        assets = layer.get_assets_def_for_node(step.node_handle)
        for key in assets.keys if assets is not None else ():
            if REQUIRES in layer.get(key).metadata:
                yield key


def resource_of(job_context: Any, kind: type[T]) -> T | None:
    """The run's resource of a class; None if it has none."""
    resources: Mapping[str, Any] = job_context.scoped_resources_builder.resource_instance_dict
    return next((resource for resource in resources.values() if isinstance(resource, kind)), None)

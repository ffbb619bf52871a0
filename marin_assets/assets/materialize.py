"""The body of every step's asset: produce the output, and report it to Dagster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import dagster as dg

from marin_assets.assets.checks import check_results
from marin_assets.assets.history import took_long
from marin_assets.assets.metadata.materialization import materialization_metadata
from marin_assets.assets.observation import observation_of
from marin_assets.assets.request import build_request
from marin_assets.assets.version_tags import DRIFT
from marin_assets.plan.contamination import contamination_of
from marin_assets.plan.facts import manifest_digest
from marin_assets.plan.node_drift import drift_of, input_digests
from marin_assets.step.graph import Graph, Node
from marin_resources.drift.drift import Drift, Kind, describe
from marin_resources.errors import MarinError
from marin_resources.orchestrator.log_positions import output_line
from marin_resources.orchestrator.lost_runs import mark_lost
from marin_resources.orchestrator.produce import FAILED_ATTEMPTS, Produced, ProduceError, RunCallbacks, produce
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource
from marin_resources.orchestrator.run_state import RunState
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.output import Observed
from marin_resources.ray_tpu.ray_options import RayGoneError
from marin_resources.storage.output.store import Store


async def materialize(
    context: dg.AssetExecutionContext, node: Node, graph: Graph, storage: StoreResource, ray_tpu: RayTPUResource
) -> dg.MaterializeResult:
    """Materialize the node's output: reuse it, or compute it. Raises dg.Failure with one sentence."""
    store = await open_store(node, storage)
    produced = await produce_output(context, node, graph, store, storage, ray_tpu)
    if not produced.reused:
        return report(context, node, produced)
    state = ray_tpu.run_state
    return report(context, node, produced, *await asyncio.to_thread(find_drift_of, node, graph, store, produced, state))


async def open_store(node: Node, storage: StoreResource) -> Store:
    """The store of the run. Raises dg.Failure."""
    try:
        return await asyncio.to_thread(storage.store)
    except MarinError as error:
        raise failure(f"Step {node.output.label!r}: {error}") from None


async def produce_output(
    context: dg.AssetExecutionContext,
    node: Node,
    graph: Graph,
    store: Store,
    storage: StoreResource,
    ray_tpu: RayTPUResource,
) -> Produced:
    """Reuse or compute one output. Raises dg.Failure with one sentence."""
    state, label = ray_tpu.run_state, node.output.label
    try:
        produced = await produce(
            build_request(
                node,
                graph,
                store,
                context.run.run_id,
                lambda: ray_tpu.on_cluster and took_long(context.instance, context.assets_def.key),
            ),
            store,
            lambda: ray_tpu.backend(context.run, context.instance, context.log.info, store.prefix),
            callbacks=_callbacks(context, node, state),
            lost_worker_budget=ray_tpu.lost_worker_budget,
            wait_for_others=storage.wait_for_others,
            should_detach=lambda: state.should_detach,
        )
    except asyncio.CancelledError:
        raise failure(f"Step {label!r} was stopped with its run. Materialize it again to go on.") from None
    except ProduceError as error:
        raise failure(str(error), error.traceback, [error.log] if error.log else []) from None
    except MarinError as error:
        if isinstance(error, RayGoneError):
            await asyncio.to_thread(mark_lost, context.instance, context.run.run_id)
        raise failure(f"Step {label!r}: {error}" if repr(label) not in str(error) else str(error)) from None
    state.manifest_digests[node.output] = manifest_digest(produced.observed)
    return produced


def _callbacks(context: dg.AssetExecutionContext, node: Node, state: RunState) -> RunCallbacks:
    label, key, partition = node.output.label, context.assets_def.key, node.output.partition
    return RunCallbacks(
        log=context.log.info,
        on_log=lambda line: print(output_line(label, line), flush=True),
        on_pace=lambda pace: context.log_event(observation_of(key, partition, pace)),
        on_job=lambda job: state.jobs.set(label, job),
    )


def report(
    context: dg.AssetExecutionContext,
    node: Node,
    produced: Produced,
    drift: Sequence[Drift] = (),
    not_recorded: Sequence[Kind] = (),
) -> dg.MaterializeResult:
    """The materialization. Its data version is the step's version, so readers stay in sync with it."""
    observed = produced.observed
    if produced.reused:
        context.log.info("; ".join(filter(None, (f"{node.name}: reused {observed.data_path}", describe(drift)))))
    else:
        warn_if_empty(context, node, observed)
    key = context.assets_def.key
    return dg.MaterializeResult(
        value=observed,
        data_version=dg.DataVersion(node.version.hash),
        metadata=materialization_metadata(produced, drift, not_recorded, contamination_of(node)),
        tags={"marin/reused": str(produced.reused).lower()} | ({DRIFT: "true"} if describe(drift) else {}),
        check_results=check_results(node.step, key, observed),
    )


def warn_if_empty(context: dg.AssetExecutionContext, node: Node, observed: Observed) -> None:
    """Log a warning for a computed output without a file and without a result."""
    if not observed.result and not observed.record.manifest.files:
        context.log.warning(
            f"{node.output.label}: complete and empty: its function wrote no file below {observed.data_path!r} and "
            "returned nothing. If that is a mistake, correct the function, and remove that folder or change a "
            "versioned field."
        )


def failure(sentence: str, traceback: str = "", logs: Sequence[str] = ()) -> dg.Failure:
    """A failure that Dagster shows as the sentence, with the function's traceback below it.

    `logs` are those of the attempts that failed.
    """
    metadata: dict[str, dg.MetadataValue] = {}
    if traceback:
        metadata["traceback"] = dg.MetadataValue.md(f"```\n{traceback}\n```")
    if logs:
        metadata[FAILED_ATTEMPTS] = dg.MetadataValue.json(list(logs))
    described = f"{sentence}\n\n{traceback}" if traceback else sentence
    return dg.Failure(described.strip(), metadata={"error": sentence, **metadata}, allow_retries=False)


def find_drift_of(
    node: Node, graph: Graph, store: Store, produced: Produced, state: RunState
) -> tuple[tuple[Drift, ...], tuple[Kind, ...]]:
    """The drift of a reused output, and the kinds of drift that its record cannot show. Blocks."""
    inputs = input_digests(node, store, produced.observed, state.manifest_digests)
    return drift_of(node, graph, store, produced.observed, inputs)

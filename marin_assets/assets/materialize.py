"""The body of every step's asset: hand the step to `produce`, report what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from marin_assets.assets.checks import check_results
from marin_assets.assets.metadata import materialization_metadata
from marin_assets.plan.facts import describe_node, resolved_config
from marin_assets.plan.node_drift import drift_of, input_digests, remember
from marin_assets.step.graph import Graph, Node
from marin_assets.step.resolve import below, mirror_budget_gb
from marin_assets.step.values import InputName, map_leaves
from marin_resources.drift.drift import Drift, Kind, describe
from marin_resources.orchestrator.interruption import goes_on
from marin_resources.orchestrator.produce import Ears, Produced, ProduceError, Request, produce
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource
from marin_resources.orchestrator.run_jobs import forget_job, note_job
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.output import Observed
from marin_resources.ray_tpu.cluster.errors import ClusterError
from marin_resources.ray_tpu.environment.extras import MissingRequirementError
from marin_resources.ray_tpu.ray_options import UnmeetableError
from marin_resources.settings import SettingError
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.store import UNREADABLE, Store
from marin_resources.wire.reference import reference_to
from marin_resources.wire.task import Task


async def materialize(
    context: dg.AssetExecutionContext, node: Node, graph: Graph, storage: StoreResource, ray_tpu: RayTPUResource
) -> dg.MaterializeResult:
    """See to it that the node's output is there. Raises dg.Failure with one sentence if it cannot be."""
    try:
        store = storage.store()
        request = build_request(node, graph, store, context.run.run_id)
        produced = await produce(
            request,
            store,
            lambda: ray_tpu.backend(context.run, context.instance, context.log.info),
            ears=_ears(context, node),
            lost_worker_budget=ray_tpu.lost_worker_budget,
            wait_for_others=storage.wait_for_others,
            goes_on=lambda: goes_on(context.run.run_id),
        )
    except asyncio.CancelledError:
        raise failure(f"Step {node.name!r} was stopped with its run. Materialize it again to go on.") from None
    except ProduceError as error:
        raise failure(str(error), error.traceback) from None
    except (
        UnmeetableError,
        ClusterError,
        MissingRequirementError,
        SettingError,
        UnavailableError,
        *UNREADABLE,
    ) as error:
        raise failure(f"Step {node.name!r}: {error}" if repr(node.name) not in str(error) else str(error)) from None
    run_id, observed = context.run.run_id, produced.observed
    remember(run_id, node, observed)
    if not produced.reused:
        return report(context, node, produced)
    return report(context, node, produced, *await asyncio.to_thread(_find_drift, run_id, node, graph, store, observed))


def _ears(context: dg.AssetExecutionContext, node: Node) -> Ears:
    run_id = context.run.run_id

    def note(job: str | None) -> None:
        if job is None:
            forget_job(context.instance, run_id, node.name)
        else:
            note_job(context.instance, run_id, node.name, job)

    return Ears(say=context.log.info, on_log=lambda line: print(f"[{node.name}] {line}", flush=True), on_job=note)


def build_request(node: Node, graph: Graph, store: Store, run_id: str | None) -> Request:
    """What `produce` needs to know of a node."""
    return Request(
        output=node.output,
        inputs={dependency.name: dependency.output for dependency in node.dependencies},
        external=tuple(external_paths(node, store)),
        task=lambda attempt, inputs: build_task(node, graph, store, attempt, inputs, run_id),
    )


def build_task(
    node: Node, graph: Graph, store: Store, attempt: int, inputs: Mapping[str, Observed], run_id: str | None
) -> Task:
    """The node as JSON for a worker. `inputs` is what was found of what it reads, by step name."""
    output, step, config = node.output, node.step, resolved_config(node, graph, store)
    return Task(
        output=output,
        prefix=store.prefix,
        path=store.locate(output),
        fn=reference_to(step.fn),
        config=config,
        resources=step.resources,
        extras=tuple(step.extras),
        env=tuple(step.env),
        packages=tuple(step.packages),
        timeout_s=step.timeout_s,
        submitted_at=datetime.now(UTC).isoformat(),
        attempt=attempt,
        resumable=step.resumable,
        mirror_budget_bytes=None if (gb := mirror_budget_gb(step)) is None else round(gb * 10**9),
        run_id=run_id,
        facts=describe_node(node, store, config, inputs, run_id),
    )


def external_paths(node: Node, store: Store) -> list[str]:
    """The paths in a config that no step makes, as they will be read."""
    found: list[str] = []

    def note(leaf: Any) -> Any:
        if isinstance(leaf, InputName) and leaf.step is None:
            found.append(below(store.prefix, leaf.name))
        return leaf

    map_leaves(node.step.config, note)
    return found


def report(
    context: dg.AssetExecutionContext,
    node: Node,
    produced: Produced,
    drift: Sequence[Drift] = (),
    not_recorded: Sequence[Kind] = (),
) -> dg.MaterializeResult:
    """The materialization: the version as data version, so that what reads it stays in step."""
    observed = produced.observed
    if produced.reused:
        context.log.info("; ".join(filter(None, (f"{node.name}: reused {observed.path}", describe(drift)))))
    key = context.assets_def.key
    return dg.MaterializeResult(
        value=observed.path,
        data_version=dg.DataVersion(node.version.hash),
        metadata=materialization_metadata(produced, drift, not_recorded),
        tags={"marin/reused": str(produced.reused).lower()} | ({"marin/drift": "true"} if describe(drift) else {}),
        check_results=check_results(node.step, key, observed),
    )


def failure(sentence: str, traceback: str = "") -> dg.Failure:
    """A failure that Dagster shows as the sentence, and the function's own traceback below it."""
    metadata = {"traceback": dg.MetadataValue.md(f"```\n{traceback}\n```")} if traceback else {}
    described = f"{sentence}\n\n{traceback}" if traceback else sentence
    return dg.Failure(described.strip(), metadata={"error": sentence, **metadata}, allow_retries=False)


def _find_drift(
    run_id: str, node: Node, graph: Graph, store: Store, observed: Observed
) -> tuple[tuple[Drift, ...], tuple[Kind, ...]]:
    return drift_of(node, graph, store, observed, input_digests(run_id, node, store, observed))

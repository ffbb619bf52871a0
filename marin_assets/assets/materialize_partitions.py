"""The body of the asset of a step with partitions: produce the partitions of the run side by side, and report each.

Each partition is an output of its own. What is complete is shown as complete, also if others fail or the run ends
early; then the step fails with the sentences of those that are not. The steps below it go on with the complete ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import dagster as dg

from marin_assets.assets.checks import check_results_of_partitions
from marin_assets.assets.materialize import (
    failure,
    find_drift_of,
    open_store,
    produce_output,
    warn_if_empty,
)
from marin_assets.assets.metadata.materialization import materialization_metadata
from marin_assets.assets.metadata.of_partitions import add_partition_metadata, add_partition_tags
from marin_assets.assets.version_tags import DRIFT, version_tags
from marin_assets.plan.contamination import contamination_of
from marin_assets.plan.facts import manifest_digest
from marin_assets.step.graph import Graph, Node
from marin_assets.step.values import ConfigError
from marin_resources.drift.drift import describe
from marin_resources.errors import MarinError
from marin_resources.orchestrator.partial_failure import marked_as_partial
from marin_resources.orchestrator.produce import FAILED_ATTEMPTS, Produced
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource
from marin_resources.orchestrator.run_state import RunState
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.storage.output.store import Store

PROGRESS_EVERY_S = 30.0
SHOWN_FAILURES = 5


@dataclass(frozen=True, kw_only=True)
class _Made:
    """A partition that is complete."""

    produced: Produced
    metadata: dict[str, Any]
    drifts: bool

    @property
    def tags(self) -> dict[str, str]:
        """Of its materialization."""
        drifts = {DRIFT: "true"} if self.drifts else {}
        return {"marin/reused": str(self.produced.reused).lower(), **drifts}


async def materialize_partitions(
    context: dg.AssetExecutionContext, node: Node, graph: Graph, storage: StoreResource, ray_tpu: RayTPUResource
) -> dg.MaterializeResult:
    """Materialize the partitions of the run: reuse or compute each. Raises dg.Failure if one of them fails."""
    store = await open_store(node, storage)
    made: dict[str, _Made] = {}
    failures: dict[str, dg.Failure] = {}
    nodes = _nodes(context, node)
    left = await _take_complete(node, nodes, graph, store, ray_tpu.run_state, made)
    if made:
        drifted = sum(one.drifts for one in made.values())
        also = f", {drifted} of them with drift, which their metadata name" if drifted else ""
        context.log.info(f"{node.name}: {len(made)} of {len(nodes)} partitions reused{also}")
    progress = _Progress(context, node.name, len(left))
    at_once = asyncio.Semaphore(ray_tpu.partitions_at_once)

    bugs: list[Exception] = []

    async def produce(key: str, one: Node) -> None:
        try:
            async with at_once:
                produced = await produce_output(context, one, graph, store, storage, ray_tpu)
            made[key] = await asyncio.to_thread(_made, one, graph, store, produced, ray_tpu.run_state)
        except dg.Failure as error:
            failures[key] = error
        except Exception as error:  # the others go on
            bugs.append(error)
        else:
            if not produced.reused:
                warn_if_empty(context, one, produced.observed)
        progress.step()

    import anyio

    try:
        # of anyio, as the executor's loop is: a task that is cancelled stops its job within a shield of anyio
        async with anyio.create_task_group() as tasks:
            for key, one in left.items():
                tasks.start_soon(produce, key, one)
    except asyncio.CancelledError:
        _show_complete(context, node, made)
        complete = f"{len(made)} of {len(nodes)} partitions are complete."
        if ray_tpu.run_state.should_detach:
            raise failure(f"The run left step {node.name!r}: {complete} {' '.join(_shown(failures))}") from None
        raise failure(
            f"Step {node.name!r} was stopped with its run: {complete} Materialize it again to go on."
        ) from None
    if bugs:
        _show_complete(context, node, made)
        raise bugs[0]
    if failures:
        _show_complete(context, node, made)
        raise _failure_of(node, {key: failures[key] for key in nodes if key in failures}, len(nodes), len(made))
    return await asyncio.to_thread(_report, context, node, made)


def _nodes(context: dg.AssetExecutionContext, node: Node) -> dict[str, Node]:
    try:
        return {str(key): node.at(str(key)) for key in context.partition_keys}
    except ConfigError as error:
        raise failure(str(error)) from None


async def _take_complete(
    node: Node, nodes: Mapping[str, Node], graph: Graph, store: Store, state: RunState, made: dict[str, _Made]
) -> dict[str, Node]:
    """Add the partitions that are complete to `made`, from one look at all; return the others. Raises dg.Failure."""
    try:
        observed = await asyncio.to_thread(store.look, [one.output for one in nodes.values()])
    except MarinError as error:
        raise failure(f"Step {node.name!r}: {error}") from None
    done = {key: one for key, one in nodes.items() if observed[one.output].done}
    for one in done.values():
        state.manifest_digests[one.output] = manifest_digest(observed[one.output])

    def take() -> None:
        for key, one in done.items():
            made[key] = _made(one, graph, store, Produced(observed=observed[one.output], reused=True), state)

    def mark() -> None:
        for key in done.keys() - store.done_partitions(node.output):
            store.mark_done(done[key].output, observed[done[key].output].record)

    await asyncio.to_thread(take)
    if done:
        await asyncio.to_thread(mark)
    return {key: one for key, one in nodes.items() if key not in done}


def _made(one: Node, graph: Graph, store: Store, produced: Produced, state: RunState) -> _Made:
    drift, unknown = find_drift_of(one, graph, store, produced, state) if produced.reused else ((), ())
    path = dg.MetadataValue.path(produced.observed.data_path)
    metadata = materialization_metadata(produced, drift, unknown, contamination_of(one))
    return _Made(produced=produced, metadata={**metadata, "path": path}, drifts=describe(drift) != "")


def _report(context: dg.AssetExecutionContext, node: Node, made: Mapping[str, _Made]) -> dg.MaterializeResult:
    add_partition_metadata(context, {key: one.metadata for key, one in made.items()})
    add_partition_tags(context, {key: one.tags for key, one in made.items()})
    observed = {key: one.produced.observed for key, one in made.items()}
    return dg.MaterializeResult(
        value=observed,
        data_version=dg.DataVersion(node.version.hash),
        check_results=check_results_of_partitions(node.step, context.assets_def.key, observed),
    )


def _show_complete(context: dg.AssetExecutionContext, node: Node, made: Mapping[str, _Made]) -> None:
    """Materializations of the complete partitions of a step that fails: Dagster records none for it by itself."""
    tags = version_tags(node)
    for key, one in made.items():
        context.log_event(
            dg.AssetMaterialization(
                context.assets_def.key, partition=key, metadata=one.metadata, tags={**tags, **one.tags}
            )
        )


def _failure_of(node: Node, failures: Mapping[str, dg.Failure], count: int, complete: int) -> dg.Failure:
    """One failure for all: the sentences of the first partitions that failed, and the first traceback. The steps below
    go on with the complete ones."""
    if count == 1:
        [only] = failures.values()
        return only
    shown = _shown(failures)
    first = next((trace for error in failures.values() if (trace := error.metadata.get("traceback"))), None)
    sentence = f"{len(failures)} of {count} partitions of {node.name!r} failed. " + " ".join(shown)
    found = failure(sentence, logs=[log for error in failures.values() for log in _logs(error)])
    rows = [{"partition": key, "error": _sentence(error)} for key, error in failures.items()]
    metadata = {**found.metadata, "failed": dg.MetadataValue.json(rows), **({"traceback": first} if first else {})}
    if complete:
        metadata |= marked_as_partial(complete)
    return dg.Failure(found.description, metadata=metadata, allow_retries=False)


def _logs(error: dg.Failure) -> list[str]:
    """The logs of the attempts that failed."""
    found = error.metadata.get(FAILED_ATTEMPTS)
    return cast(list[str], found.value) if found is not None else []


def _shown(failures: Mapping[str, dg.Failure]) -> list[str]:
    shown = [_sentence(error) for error in list(failures.values())[:SHOWN_FAILURES]]
    if more := len(failures) - len(shown):
        shown.append(f"And {more} more partitions: see the metadata of this failure, or `marin partitions`.")
    return shown


def _sentence(error: dg.Failure) -> str:
    return str(error.metadata["error"].value)


class _Progress:
    """Log lines with the count, the rate and the time that is left, every 30 s."""

    def __init__(self, context: dg.AssetExecutionContext, name: str, total: int) -> None:
        self._context, self._name, self._total = context, name, total
        self._ended, self._began_s = 0, time.monotonic()
        self._logged_s = self._began_s

    def step(self) -> None:
        self._ended += 1
        now_s = time.monotonic()
        if now_s - self._logged_s < PROGRESS_EVERY_S or self._ended == self._total:
            return
        self._logged_s = now_s
        per_s = self._ended / (now_s - self._began_s)
        left_s = (self._total - self._ended) / per_s
        self._context.log.info(
            f"{self._name}: {self._ended} of {self._total} partitions, {per_s * 60:.1f} a minute, {left_s:.0f} s left"
        )

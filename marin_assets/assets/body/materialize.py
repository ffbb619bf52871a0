"""The body of every step's asset: look at the outputs of the run, reuse or compute each, and report them to Dagster.

A step without partitions has one output, under the key None. A step with partitions has one for each partition of the
run, and they are produced side by side. What is complete is shown as complete, also if others fail or the run ends
early; then the step fails with the sentences of those that are not, and the steps below it continue with the complete
ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from marin_assets.assets.body.failure import failure, failure_from, failure_of_partitions, shown_failures
from marin_assets.assets.body.request import build_request
from marin_assets.assets.checks import check_results, check_results_of_partitions
from marin_assets.assets.metadata.materialization import materialization_metadata
from marin_assets.assets.version_tags import DRIFT, version_tags
from marin_assets.plan.record_facts.contamination import contamination_of
from marin_assets.plan.record_facts.facts import manifest_digest
from marin_assets.plan.record_facts.node_drift import drift_of, input_digests
from marin_assets.step.graph import Graph, Node
from marin_resources.dagster_fixes.partition_metadata import add_partition_metadata, add_partition_tags
from marin_resources.drift.drift import Drift, Kind, describe
from marin_resources.orchestrator.log_positions import output_line
from marin_resources.orchestrator.lost_runs import mark_lost
from marin_resources.orchestrator.produce import Produced, RunCallbacks, produce
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource
from marin_resources.orchestrator.run_state import RunState
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.ray_tpu.ray_options import RayGoneError
from marin_resources.storage.output.notes.progress import Progress
from marin_resources.storage.output.store import Store
from marin_resources.types.durations import readable_duration
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Observed, Output

PROGRESS_EVERY_S = 30.0


LONG_S = 600.0
"""A step that took longer is a job of its own on a cluster: it then outlives the head, and everything else."""


async def materialize(
    context: dg.AssetExecutionContext, node: Node, graph: Graph, storage: StoreResource, ray_tpu: RayTPUResource
) -> dg.MaterializeResult:
    """Materialize the outputs of the run: reuse or compute each. Raises dg.Failure with one sentence."""
    try:
        store = await asyncio.to_thread(storage.store)
        keys: Sequence[str | None] = [None] if node.step.partitions is None else list(map(str, context.partition_keys))
        nodes = {key: node if key is None else node.at(key) for key in keys}
    except MarinError as error:
        raise failure_from(node.name, error) from None
    body = Body(context=context, node=node, graph=graph, store=store, storage=storage, ray_tpu=ray_tpu, nodes=nodes)
    return await body.run()


@dataclass(frozen=True, kw_only=True)
class _Complete:
    """A complete output, and its materialization."""

    produced: Produced
    metadata: dict[str, Any]
    drift: str
    """One phrase; "" without drift."""

    @property
    def tags(self) -> dict[str, str]:
        return {"marin/reused": str(self.produced.reused).lower()} | ({DRIFT: "true"} if self.drift else {})


@dataclass(frozen=True, kw_only=True)
class Body:
    """One execution of a step: its outputs by key, and which of them are complete or have failed so far."""

    context: dg.AssetExecutionContext
    node: Node
    graph: Graph
    store: Store
    storage: StoreResource
    ray_tpu: RayTPUResource
    nodes: Mapping[str | None, Node]
    complete: dict[str | None, _Complete] = field(default_factory=dict)
    failures: dict[str | None, dg.Failure] = field(default_factory=dict)
    bugs: list[Exception] = field(default_factory=list)

    async def run(self) -> dg.MaterializeResult:
        """Observe, produce, report. Raises dg.Failure."""
        import anyio

        try:
            incomplete = await self._reuse()
            progress = _Progress(self.context, self.node.name, len(incomplete))
            at_once = asyncio.Semaphore(self.ray_tpu.partitions_at_once)
            # of anyio, as the executor's loop is: a task that is cancelled stops its job within a shield of anyio
            async with anyio.create_task_group() as tasks:
                for key in incomplete:
                    tasks.start_soon(self._produce, key, progress, at_once)
        except asyncio.CancelledError:
            self._show_complete()
            raise self._stopped() from None
        if self.bugs or self.failures:
            self._show_complete()
        if self.bugs:
            raise self.bugs[0]
        if self.failures:
            failures = {key: self.failures[key] for key in self.nodes if key in self.failures}
            raise failure_of_partitions(self.node.name, failures, len(self.nodes), len(self.complete))
        return await asyncio.to_thread(self._report)

    async def _reuse(self) -> list[str | None]:
        """Take the outputs that are complete, from one look at all; return the keys of the others. Raises dg.Failure.

        What the plan has just read as idle is not read again: the claim finds out what has changed since.
        """
        outputs = [node.output for node in self.nodes.values()]
        recent = self.ray_tpu.run_state.recent(outputs)
        unread = [output for output in outputs if output not in recent or not recent[output].idle]
        try:
            looked = await asyncio.to_thread(self.store.look, unread)
        except MarinError as error:
            raise failure_from(self.node.name, error) from None
        self._remember(looked)
        states = {key: looked[node.output] for key, node in self.nodes.items() if node.output in looked}
        complete = {key: state for key, state in states.items() if state.done}
        if complete:
            await asyncio.to_thread(self._take, complete)
            self._log_reused()
        return [key for key in self.nodes if key not in complete]

    def _remember(self, observed: Mapping[Output, Observed]) -> None:
        """Keep the states for this run: the digests of complete outputs, to be compared, and all for a moment."""
        state = self.ray_tpu.run_state
        state.remember(observed)
        state.manifest_digests.update((output, manifest_digest(seen)) for output, seen in observed.items() if seen.done)

    def _take(self, complete: Mapping[str | None, Observed]) -> None:
        for key, observed in complete.items():
            self.complete[key] = self._completed(self.nodes[key], Produced(observed=observed, reused=True))
        if self.node.step.partitions is not None:
            for key in complete.keys() - self.store.done_partitions(self.node.output):
                self.store.mark_done(self.nodes[key].output, complete[key].record)

    def _log_reused(self) -> None:
        if self.node.step.partitions is not None:
            drifted = sum(output.drift != "" for output in self.complete.values())
            also = f", {drifted} of them with drift, which their metadata name" if drifted else ""
            count = f"{len(self.complete)} of {len(self.nodes)}"
            self.context.log.info(f"{self.node.name}: {count} partitions reused{also}")
            return
        for output in self.complete.values():
            reused = f"{self.node.name}: reused {output.produced.observed.data_path}"
            self.context.log.info("; ".join(filter(None, (reused, output.drift))))

    async def _produce(self, key: str | None, progress: _Progress, at_once: asyncio.Semaphore) -> None:
        """Produce one output, and add it to those that are complete or have failed."""
        node = self.nodes[key]
        try:
            async with at_once:
                produced = await produce_output(self, node)
            self._remember({node.output: produced.observed})
            self.complete[key] = await asyncio.to_thread(self._completed, node, produced)
        except dg.Failure as error:
            self.failures[key] = error
        except Exception as error:  # the other outputs are produced all the same
            self.bugs.append(error)
        else:
            if not produced.reused:
                warn_if_empty(self.context, node, produced.observed)
            elif key is None:
                self._log_reused()
        progress.step()

    def _completed(self, node: Node, produced: Produced) -> _Complete:
        """The complete output with its metadata; a reused one with its drift. Blocks."""
        observed, state = produced.observed, self.ray_tpu.run_state
        drift: tuple[Drift, ...] = ()
        not_recorded: tuple[Kind, ...] = ()
        if produced.reused:
            inputs = input_digests(node, self.store, observed, state.manifest_digests)
            drift, not_recorded = drift_of(node, self.graph, self.store, observed, inputs)
        metadata = materialization_metadata(produced, drift, not_recorded, contamination_of(node), node.origins)
        path = dg.MetadataValue.path(observed.data_path)
        return _Complete(produced=produced, metadata={**metadata, "path": path}, drift=describe(drift))

    def _stopped(self) -> dg.Failure:
        """The failure of a step whose run ends early."""
        name, again = self.node.name, "Materialize it again to continue."
        if self.node.step.partitions is None:
            stopped = failure(f"Step {name!r} was stopped with its run. {again}")
            return self.failures.get(None, stopped)
        count = f"{len(self.complete)} of {len(self.nodes)} partitions are complete."
        if self.ray_tpu.run_state.should_detach:
            return failure(f"The run left step {name!r}: {count} {shown_failures(self.failures)}")
        return failure(f"Step {name!r} was stopped with its run: {count} {again}")

    def _report(self) -> dg.MaterializeResult:
        """The materializations. Their data version is the step's version, so readers stay in sync with it."""
        step, key = self.node.step, self.context.assets_def.key
        version = dg.DataVersion(self.node.version.hash)
        observed = {name: output.produced.observed for name, output in self.complete.items()}
        if (whole := self.complete.get(None)) is not None:
            checks = check_results(step, key, observed[None])
            return dg.MaterializeResult(
                value=observed, data_version=version, metadata=whole.metadata, tags=whole.tags, check_results=checks
            )
        partitions = {str(name): output for name, output in self.complete.items()}
        add_partition_metadata(self.context, {name: output.metadata for name, output in partitions.items()})
        add_partition_tags(self.context, {name: output.tags for name, output in partitions.items()})
        checks = check_results_of_partitions(step, key, {str(name): seen for name, seen in observed.items()})
        return dg.MaterializeResult(value=observed, data_version=version, check_results=checks)

    def _show_complete(self) -> None:
        """Materializations of the complete outputs of a step that fails: Dagster records none for it by itself."""
        tags, key = version_tags(self.node), self.context.assets_def.key
        for name, output in self.complete.items():
            self.context.log_event(
                dg.AssetMaterialization(key, partition=name, metadata=output.metadata, tags={**tags, **output.tags})
            )


async def produce_output(body: Body, node: Node) -> Produced:
    """Reuse or compute one output. Raises dg.Failure with one sentence."""
    context, store, ray_tpu, label = body.context, body.store, body.ray_tpu, node.output.label
    state = ray_tpu.run_state

    def was_long() -> bool:
        return ray_tpu.on_cluster and was_long_running(context.instance, context.assets_def.key)

    try:
        return await produce(
            build_request(node, body.graph, store, context.run.run_id, was_long),
            store,
            lambda: ray_tpu.backend(context.run, context.instance, context.log.info, store.prefix),
            callbacks=_callbacks(context, node, state),
            recent=state.recent,
            lost_worker_budget=ray_tpu.lost_worker_budget,
            wait_for_others=body.storage.wait_for_others,
            should_detach=lambda: state.should_detach,
        )
    except asyncio.CancelledError:
        raise failure(f"Step {label!r} was stopped with its run. Materialize it again to continue.") from None
    except MarinError as error:
        if isinstance(error, RayGoneError):
            await asyncio.to_thread(mark_lost, context.instance, context.run.run_id)
        raise failure_from(label, error) from None


def _callbacks(context: dg.AssetExecutionContext, node: Node, state: RunState) -> RunCallbacks:
    label, key, partition = node.output.label, context.assets_def.key, node.output.partition
    return RunCallbacks(
        log=context.log.info,
        on_log=lambda line: print(output_line(label, line), flush=True),
        on_pace=lambda pace: context.log_event(observation_of(key, partition, pace)),
        on_job=lambda job: state.jobs.set(label, job),
    )


def warn_if_empty(context: dg.AssetExecutionContext, node: Node, observed: Observed) -> None:
    """Log a warning for a computed output without a file and without a result."""
    if not observed.result and not observed.record.manifest.files:
        context.log.warning(
            f"{node.output.label}: complete and empty: its function wrote no file below {observed.data_path!r} and "
            "returned nothing. If that is a mistake, correct the function, and remove that folder or change a "
            "versioned field."
        )


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


def was_long_running(instance: dg.DagsterInstance, key: dg.AssetKey, long_s: float = LONG_S) -> bool:
    """Whether the last recorded computation of the asset took longer. False without a history. Blocks."""
    event = instance.get_latest_materialization_event(key)
    recorded = event.asset_materialization.metadata.get("compute_s") if event and event.asset_materialization else None
    return recorded is not None and float(recorded.value) > long_s  # type: ignore[arg-type]


def observation_of(key: dg.AssetKey, partition: str | None, pace: Progress) -> dg.AssetObservation:
    """The step, its speed, its time left, and the other numbers that the function has reported."""
    numbers: dict[str, Any] = {
        "step": pace.step,
        "steps": pace.of,
        "steps_per_s": pace.steps_per_s,
        "left_s": None if pace.left_s is None else round(pace.left_s, 1),
    }
    shown = {name: value for name, value in numbers.items() if value is not None} | dict(pace.numbers)
    return dg.AssetObservation(key, partition=partition, description=_describe(pace), metadata=shown)


def _describe(pace: Progress) -> str:
    """ "step 120 of 600, loss 3.21, 2 min left" """
    parts = [f"step {pace.step}" + ("" if pace.of is None else f" of {pace.of}")]
    if "loss" in pace.numbers:
        parts.append(f"loss {pace.numbers['loss']:.4g}")
    if pace.left_s is not None:
        parts.append(f"{readable_duration(pace.left_s)} left")
    return ", ".join(parts)

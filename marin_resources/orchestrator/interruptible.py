"""An executor that runs `async def` assets in one event loop and stops them on Ctrl-C and Terminate.

It subclasses dagster-async-executor. As published (0.0.4), the main thread of that package waits on a queue while
Dagster blocks interrupts, so an interrupt arrives only after the last step. Here the main thread unblocks interrupts
while it waits. The assets then get `CancelledError` and stop their tasks, and the run's log gets one sentence. Both
packages are pinned exactly, as this relies on their internals; tests/marin_resources/orchestrator/test_executor.py
checks what it relies on.
"""

from __future__ import annotations

import asyncio
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

from anyio.from_thread import start_blocking_portal
from anyio.streams.memory import MemoryObjectSendStream
from dagster import DagsterEvent, DagsterRun, DagsterRunStatus
from dagster._core.definitions.assets.job.asset_job import IMPLICIT_ASSET_JOB_NAME
from dagster._core.errors import DagsterError, DagsterExecutionInterruptedError, raise_execution_interrupts
from dagster._core.events import EngineEventData
from dagster._core.execution.compute_logs import create_compute_log_file_key
from dagster._core.execution.context.system import PlanExecutionContext
from dagster._core.execution.plan.active import ActiveExecution
from dagster._core.execution.plan.execute_plan import _handle_compute_log_setup_error
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.plan.state import KnownExecutionState
from dagster._core.execution.plan.step import ExecutionStep
from dagster_async_executor.executor import AsyncExecutor

from marin_resources.errors import MarinError
from marin_resources.orchestrator.captured_output import threads_for_tails
from marin_resources.orchestrator.console import shorten_console
from marin_resources.orchestrator.partial_failure import go_on_below
from marin_resources.orchestrator.patience import be_patient
from marin_resources.orchestrator.preflight import refuse_unmet
from marin_resources.orchestrator.ray_tpu_resource import RayTPUResource
from marin_resources.orchestrator.run_launcher import NOT_AGAIN, process_tag
from marin_resources.orchestrator.run_state import Interruption, RunState

_END = object()
POOL_POLL_S = 0.5


class NothingSelectedError(MarinError, DagsterError):
    """A run of the implicit asset job selects nothing, which Dagster takes for all assets of the code location."""


class InterruptibleExecutor(AsyncExecutor):
    """Every step of a run in one event loop; an interrupt cancels them all."""

    def _execution_iterator_wrapper(
        self, job_context: PlanExecutionContext, execution_plan: ExecutionPlan
    ) -> Iterator[DagsterEvent]:
        try:
            yield from self._execute(job_context, execution_plan)
        except Exception:  # the run ends by itself, and Dagster's daemon tries again only what was lost
            job_context.instance.add_run_tags(job_context.run_id, NOT_AGAIN)
            raise

    def _execute(self, job_context: PlanExecutionContext, execution_plan: ExecutionPlan) -> Iterator[DagsterEvent]:
        be_patient()
        _require_selection(job_context.dagster_run)
        shorten_console(job_context.log, job_context.dagster_run)
        refuse_unmet(job_context, execution_plan)
        job_context.instance.add_run_tags(job_context.run_id, process_tag(job_context.run_id))
        with (
            InstanceConcurrencyContext(job_context.instance, job_context.dagster_run) as concurrency,
            execution_plan.start(
                retry_mode=self.retries,
                max_concurrent=self._max_concurrent,
                tag_concurrency_limits=self._tag_concurrency_limits,
                instance_concurrency_context=concurrency,
                step_dependency_config=self.step_dependency_config,
            ) as active,
            ExitStack() as capture,
        ):
            _poll_pools(active, concurrency)
            go_on_below(active, execution_plan)
            yield from _capture_logs(job_context, execution_plan, capture)
            yield from self._events(job_context, active)

    async def _run_step_worker(
        self,
        job_context: PlanExecutionContext,
        known_state: KnownExecutionState,
        step: ExecutionStep,
        send_stream: MemoryObjectSendStream[DagsterEvent],
    ) -> None:
        await super()._run_step_worker(job_context, known_state, step, _CancellationSafeStream(send_stream))  # type: ignore[arg-type]

    def _events(self, job_context: PlanExecutionContext, active: ActiveExecution) -> Iterator[DagsterEvent]:
        events: queue.Queue[Any] = queue.Queue()

        async def pump() -> None:
            try:
                async for event in self._async_execution_iterator(job_context, active):
                    events.put(event)
            except BaseException as error:  # the waiting thread raises it
                events.put(error)
            finally:
                events.put(_END)

        signals = _Signals()
        with start_blocking_portal() as portal:
            task = portal.start_task_soon(pump)
            try:
                while (item := self._next(events, signals)) is not _END:
                    if isinstance(item, BaseException):
                        raise item
                    yield item
            except DagsterExecutionInterruptedError:
                active.mark_interrupted()
                state = _run_state_of(job_context)
                state.interruption = _interruption_of(job_context, signals)
                if state.interruption is not Interruption.SIGTERM:  # that of a redeployment, after which it goes on
                    job_context.instance.add_run_tags(job_context.run_id, NOT_AGAIN)
                yield _interrupted_event(job_context, active, state)
                task.cancel()
                raise
            except BaseException:  # any end of the run ends the steps in flight
                task.cancel()
                raise

    @staticmethod
    def _next(events: queue.Queue[Any], signals: _Signals) -> Any:
        with raise_execution_interrupts(), signals.recorded():
            return events.get()


class _CancellationSafeStream:
    """The stream of a step's events. It accepts the failure event of a step that is being cancelled.

    Dagster logs a step's failure when the event is created. In a cancelled run nothing receives the event from the
    stream, and the base class would log a second failure with asyncio's own traceback.
    """

    def __init__(self, stream: MemoryObjectSendStream[DagsterEvent]) -> None:
        self._stream = stream

    async def __aenter__(self) -> _CancellationSafeStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)

    async def send(self, event: DagsterEvent) -> None:
        try:
            await self._stream.send(event)
        except asyncio.CancelledError:
            if not event.is_step_failure:
                raise


def _poll_pools(active: ActiveExecution, concurrency: InstanceConcurrencyContext) -> None:
    """Poll for steps that wait for a concurrency pool.

    Dagster 1.13.27 returns an interval of 0 s for them. The base class takes 0 s for "nothing to wait for" and then
    waits for an event that never comes.
    """
    interval = active.sleep_interval
    active.sleep_interval = lambda: (  # type: ignore[method-assign]
        max(interval(), POOL_POLL_S) if concurrency.has_pending_claims() else interval()
    )


class _Signals:
    """Records the signal that interrupted: Dagster handles SIGTERM and SIGINT alike and keeps neither."""

    def __init__(self) -> None:
        self.last: int | None = None

    @contextmanager
    def recorded(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def note(number: int, frame: FrameType | None) -> None:
            self.last = number
            handler = handlers[signal.Signals(number)]
            if callable(handler):
                handler(number, frame)

        for number in handlers:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _capture_logs(
    job_context: PlanExecutionContext, execution_plan: ExecutionPlan, capture: ExitStack
) -> Iterator[DagsterEvent]:
    """Capture one compute log for the whole run, as the base class does."""
    manager = job_context.instance.compute_log_manager
    step_keys = [step.key for step in execution_plan.get_steps_to_execute_in_topo_order()]
    log_key = manager.build_log_key_for_run(job_context.run_id, create_compute_log_file_key())
    try:
        with threads_for_tails():
            log_context = capture.enter_context(manager.capture_logs(log_key))
        yield DagsterEvent.capture_logs(job_context, step_keys, log_key, log_context)
    except Exception:  # a log that cannot be captured is reported in the run and does not end it
        yield from _handle_compute_log_setup_error(job_context, sys.exc_info())


def _require_selection(run: DagsterRun) -> None:
    """The UI's "Materialize all" selects each asset by name; a selection that matches no asset is empty."""
    if run.job_name.startswith(IMPLICIT_ASSET_JOB_NAME) and not (run.asset_selection or run.asset_check_selection):
        raise NothingSelectedError(
            f"The run {run.run_id!r} selects no asset, and Dagster would materialize all assets of all experiments. "
            "Nothing was computed. Correct the name in the selection: the page of an asset shows its key."
        )


def _asset_names(job_context: PlanExecutionContext, step_key: str) -> list[str]:
    """The assets of a step of the run, or the step's own name if it has none."""
    handle = job_context.execution_plan.get_step_by_key(step_key).node_handle
    assets = job_context.job_def.asset_layer.get_assets_def_for_node(handle)
    return [key.to_user_string() for key in assets.keys] if assets is not None else [step_key]


def _run_state_of(job_context: PlanExecutionContext) -> RunState:
    """The state that the run's resource carries. A run without that resource has no compute to detach from."""
    for resource in job_context.scoped_resources_builder.resource_instance_dict.values():
        if isinstance(resource, RayTPUResource):
            return resource.run_state
    return RunState(job_context.instance, job_context.run_id)


def _interruption_of(job_context: PlanExecutionContext, signals: _Signals) -> Interruption:
    run = job_context.instance.get_run_by_id(job_context.run_id)
    if run is not None and run.status in (DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED):
        return Interruption.TERMINATED
    return Interruption.SIGTERM if signals.last == signal.SIGTERM else Interruption.CTRL_C


def _interrupted_event(job_context: PlanExecutionContext, active: ActiveExecution, state: RunState) -> DagsterEvent:
    assert state.interruption is not None
    steps = sorted(name for key in active._in_flight for name in _asset_names(job_context, key))
    named = ", ".join(steps) or "no step"
    if state.should_detach:
        effect = f"this run detaches from {named}, and the cluster keeps computing. "
    else:
        effect = f"the compute of {named} is being stopped. "
    return DagsterEvent.engine_event(
        job_context,
        f"{state.interruption.value}: {effect}Complete outputs stay; materialize the same again to continue.",
        event_specific_data=EngineEventData.interrupted(steps),
    )

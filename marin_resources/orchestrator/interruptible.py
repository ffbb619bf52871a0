"""dagster-async-executor, made to hear Ctrl-C and Terminate.

The package runs `async def` assets in one event loop. As published (0.0.4) its main thread waits on a queue while
Dagster holds interrupts back, so they arrive only when everything is done. Here the main thread lets interrupts
through while it waits; the assets see `CancelledError` and stop their tasks, and the run's log gets one sentence.
Both packages are pinned exactly, since this stands on their insides; what must stay true of them is held by
tests/marin_resources/orchestrator/test_executor.py.
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
from dagster import DagsterEvent, DagsterRunStatus
from dagster._core.errors import DagsterExecutionInterruptedError, raise_execution_interrupts
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

from marin_resources.orchestrator.interruption import Interruption, goes_on, note_interruption
from marin_resources.orchestrator.run_launcher import process_tag

_END = object()
POOL_POLL_S = 0.5


class InterruptibleExecutor(AsyncExecutor):
    """Every step of a run in one event loop; an interrupt cancels them all."""

    def _execution_iterator_wrapper(
        self, job_context: PlanExecutionContext, execution_plan: ExecutionPlan
    ) -> Iterator[DagsterEvent]:
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
            _look_again_for_pools(active, concurrency)
            yield from _capture_logs(job_context, execution_plan, capture)
            yield from self._events(job_context, active)

    async def _run_step_worker(
        self,
        job_context: PlanExecutionContext,
        known_state: KnownExecutionState,
        step: ExecutionStep,
        send_stream: MemoryObjectSendStream[DagsterEvent],
    ) -> None:
        await super()._run_step_worker(job_context, known_state, step, _LastWordStream(send_stream))  # type: ignore[arg-type]

    def _events(self, job_context: PlanExecutionContext, active: ActiveExecution) -> Iterator[DagsterEvent]:
        events: queue.Queue[Any] = queue.Queue()

        async def pump() -> None:
            try:
                async for event in self._async_execution_iterator(job_context, active):
                    events.put(event)
            except BaseException as error:  # handed to the waiting thread, which raises it there
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
                why = _why(job_context, signals)
                note_interruption(job_context.run_id, why)
                yield _interrupted_event(job_context, active, why)
                task.cancel()
                raise
            except BaseException:  # whatever ends the run ends the steps that are under way
                task.cancel()
                raise

    @staticmethod
    def _next(events: queue.Queue[Any], signals: _Signals) -> Any:
        with raise_execution_interrupts(), signals.noted():
            return events.get()


class _LastWordStream:
    """The stream of a step's events, that lets a step which is stopped have its last word.

    A step's failure is in the run's log when it is made. Nobody receives it from the stream of a run that is being
    cancelled, and the base class would log a second failure, with asyncio's own traceback.
    """

    def __init__(self, stream: MemoryObjectSendStream[DagsterEvent]) -> None:
        self._stream = stream

    async def __aenter__(self) -> _LastWordStream:
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


def _look_again_for_pools(active: ActiveExecution, concurrency: InstanceConcurrencyContext) -> None:
    """See to it that steps which wait for a pool are asked again.

    Dagster 1.13.27 gives an interval of 0 s for them, which the base class takes for "nothing to wait for", and then
    waits for an event that never comes.
    """
    interval = active.sleep_interval
    active.sleep_interval = lambda: (  # type: ignore[method-assign]
        max(interval(), POOL_POLL_S) if concurrency.has_pending_claims() else interval()
    )


class _Signals:
    """Remembers which signal interrupted: Dagster handles SIGTERM and SIGINT alike and keeps neither."""

    def __init__(self) -> None:
        self.last: int | None = None

    @contextmanager
    def noted(self) -> Iterator[None]:
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
    """One compute log for the whole run, as the base class has it."""
    manager = job_context.instance.compute_log_manager
    step_keys = [step.key for step in execution_plan.get_steps_to_execute_in_topo_order()]
    log_key = manager.build_log_key_for_run(job_context.run_id, create_compute_log_file_key())
    try:
        with _sigint_blocked():
            log_context = capture.enter_context(manager.capture_logs(log_key))
        yield DagsterEvent.capture_logs(job_context, step_keys, log_key, log_context)
    except Exception:  # a log that cannot be captured is reported in the run, and does not end it
        yield from _handle_compute_log_setup_error(job_context, sys.exc_info())


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Children started here never see Ctrl-C (a mask is inherited); Dagster's would print a traceback each."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _asset_names(job_context: PlanExecutionContext, step_key: str) -> list[str]:
    """The assets that a step of the run makes, or the step's own name if it makes none."""
    handle = job_context.execution_plan.get_step_by_key(step_key).node_handle
    assets = job_context.job_def.asset_layer.get_assets_def_for_node(handle)
    return [key.to_user_string() for key in assets.keys] if assets is not None else [step_key]


def _why(job_context: PlanExecutionContext, signals: _Signals) -> Interruption:
    run = job_context.instance.get_run_by_id(job_context.run_id)
    if run is not None and run.status in (DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED):
        return Interruption.TERMINATED
    return Interruption.SIGTERM if signals.last == signal.SIGTERM else Interruption.CTRL_C


def _interrupted_event(job_context: PlanExecutionContext, active: ActiveExecution, why: Interruption) -> DagsterEvent:
    steps = sorted(name for key in active._in_flight for name in _asset_names(job_context, key))
    named = ", ".join(steps) or "no step"
    if goes_on(job_context.run_id):
        told = f"nobody waits for {named} any more, and what the cluster computes of it goes on. "
    else:
        told = f"the compute of {named} is being stopped. "
    return DagsterEvent.engine_event(
        job_context,
        f"{why.value}: {told}What is complete stays; materialize the same again to go on.",
        event_specific_data=EngineEventData.interrupted(steps),
    )

"""The executor of a run: every step in this process, and an interrupt stops them all.

The main thread takes the events of the steps from a queue and passes them to Dagster's own state machine of a plan,
`ActiveExecution`, which decides the next steps. `step_threads.py` executes the steps. A signal is an item of the same
queue: the coroutines are then cancelled, the assets stop their tasks, and the run's log gets one sentence.

`dg.Executor` is public, and the plan that it gets is not. The executor uses these private names of Dagster 1.13.27, all
of them in this file; tests/marin_resources/dagster_fixes/executor/test_engine.py checks them:

    ExecuteRunWithPlanIterable, PlanExecutionContextManager   resources and contexts of a run, torn down at its end
    InstanceConcurrencyContext                                slots of pools
    dagster_event_sequence_for_step, _trigger_hook            execute a step, and its hooks
    StepOutputHandle                                          the output of a step that failed in part
    EngineEventData, _handle_compute_log_setup_error          events of the run's log
    RetryMode, StepDependencyConfig                           values of the executor's config

It also calls methods of the objects that it gets: the plan, its ActiveExecution (the order of steps: retries, skips,
limits), and a StepExecutionContext, whose `_event_loop` runs its coroutine. Dagster has no executor in which a step is
a coroutine (dagster-io/dagster#32833): without this one each step that waits is a process.

Dagster 1.13.27 handles both alike, keeps neither's number, and raises an error wherever the main thread is. Here the
main thread takes the signal when it is ready for it. A `queue.SimpleQueue` may be filled in a handler of signals.

Related: dagster-io/dagster#14051. Without this, a run cannot distinguish Ctrl-C from a redeployment.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import dagster as dg
from dagster._core.events import EngineEventData
from dagster._core.execution.api import ExecuteRunWithPlanIterable
from dagster._core.execution.context_creation_job import PlanExecutionContextManager
from dagster._core.execution.plan.execute_plan import (
    _handle_compute_log_setup_error,
    _trigger_hook,
    dagster_event_sequence_for_step,
)
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext
from dagster._core.execution.plan.outputs import StepOutputHandle
from dagster._core.execution.retries import RetryMode
from dagster._core.execution.step_dependency_config import StepDependencyConfig

from marin_resources.dagster_fixes.captured_output import threads_for_tails
from marin_resources.dagster_fixes.console import shorten_console
from marin_resources.dagster_fixes.executor.interruption import Interruption
from marin_resources.dagster_fixes.executor.partial_failure import is_partial
from marin_resources.dagster_fixes.executor.step_threads import StepEnded, StepThreads
from marin_resources.dagster_fixes.retry_policy import enable_retries
from marin_resources.dagster_fixes.run_launcher import NOT_AGAIN, process_tag

POOL_POLL_S = 0.5
"""Time between two looks for a free slot of a pool. Dagster 1.13.27 returns an interval of 0 s for it."""
RETRY_POLL_S = 0.01
"""Time until a retry that is due is ready."""


ENDING = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, kw_only=True)
class RunHooks:
    """Functions that the executor calls with the context of the run."""

    before_steps: Callable[[Any, Any], None]
    """Called with the plan too, before the first step. An error ends the run."""
    interrupted: Callable[[Any, Interruption], bool]
    """Returns whether the steps, which are cancelled next, leave their compute running."""


class InterruptibleExecutor(dg.Executor):
    """Executes the steps of a run in threads of this process; an interrupt stops them all."""

    def __init__(self, config: Mapping[str, Any], max_concurrent: int, hooks: RunHooks) -> None:
        """`config` has Dagster's fields `retries`, `step_dependency_config` and `tag_concurrency_limits`."""
        self._hooks = hooks
        self._retries = RetryMode.from_config(config["retries"])
        self._step_dependency_config = StepDependencyConfig.from_config(config.get("step_dependency_config"))
        self._tag_concurrency_limits = config.get("tag_concurrency_limits")
        self._max_concurrent = max_concurrent

    @property
    def retries(self) -> RetryMode:
        assert self._retries is not None
        return self._retries

    @property
    def step_dependency_config(self) -> StepDependencyConfig:
        return self._step_dependency_config

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        """Initialise the resources, execute the plan, tear the resources down."""
        process = EngineEventData.in_process(os.getpid(), execution_plan.step_keys_to_execute)
        yield dg.DagsterEvent.engine_event(plan_context, f"Executing the steps in process {os.getpid()}", process)
        began_s = time.monotonic()
        yield from ExecuteRunWithPlanIterable(
            execution_plan=execution_plan,
            iterator=self._execute_with_resources,
            execution_context_manager=PlanExecutionContextManager(
                job=plan_context.job,
                retry_mode=plan_context.retry_mode,
                execution_plan=execution_plan,
                run_config=plan_context.run_config,
                dagster_run=plan_context.dagster_run,
                instance=plan_context.instance,
                raise_on_error=plan_context.raise_on_error,
                output_capture=plan_context.output_capture,
                step_dependency_config=self.step_dependency_config,
            ),
        )
        ended = f"The steps have ended, after {time.monotonic() - began_s:.1f} s"
        yield dg.DagsterEvent.engine_event(plan_context, ended, process)

    def _execute_with_resources(self, job_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        try:
            yield from self._execute_plan(job_context, execution_plan)
        except Exception:  # the run ends by itself, and Dagster's daemon retries lost runs alone
            job_context.instance.add_run_tags(job_context.run_id, NOT_AGAIN)
            raise

    def _execute_plan(self, context: Any, plan: Any) -> Iterator[dg.DagsterEvent]:
        enable_retries()
        shorten_console(context.log, context.dagster_run)
        self._hooks.before_steps(context, plan)
        context.instance.add_run_tags(context.run_id, process_tag(context.run_id))
        with (
            InstanceConcurrencyContext(context.instance, context.dagster_run) as pools,
            plan.start(
                retry_mode=self.retries,
                max_concurrent=self._max_concurrent,
                tag_concurrency_limits=self._tag_concurrency_limits,
                instance_concurrency_context=pools,
                step_dependency_config=self.step_dependency_config,
            ) as active,
            ExitStack() as capture,
        ):
            yield from _capture_logs(context, plan, capture)
            yield from _Steps(context, active, pools, self._hooks.interrupted).execute(self._max_concurrent)


class _Steps:
    """The steps of one run."""

    def __init__(
        self,
        context: Any,
        active: Any,
        pools: InstanceConcurrencyContext,
        interrupted: Callable[[Any, Interruption], bool],
    ) -> None:
        self._context, self._active, self._pools, self._interrupted = context, active, pools, interrupted
        self._waits_for_success = context.step_dependency_config.require_upstream_step_success
        self._items: queue.SimpleQueue[dg.DagsterEvent | StepEnded | signal.Signals] = queue.SimpleQueue()
        self._in_flight: set[str] = set()
        """Steps that have begun and neither succeeded nor failed."""
        self._threads = 0
        """Steps whose threads have not ended: those in flight, and those whose hooks run."""

    def execute(self, max_concurrent: int) -> Iterator[dg.DagsterEvent]:
        """Execute all steps. Raises DagsterExecutionInterruptedError."""
        with signals_put(self._items.put), StepThreads(max_concurrent, self._items.put) as threads:
            try:
                if self._active.check_for_interrupts():  # a signal came before this block
                    yield from self._interrupt(None)
                while self._threads or not self._active.is_complete:
                    yield from self._start_steps(threads)
                    yield from self._handle_items()
            except BaseException:  # any end of the run ends the steps in flight
                threads.cancel()
                raise

    def _start_steps(self, threads: StepThreads) -> Iterator[dg.DagsterEvent]:
        """Start the steps that are ready, and report those that wait for a pool."""
        steps = self._active.get_steps_to_execute()
        known_state = self._active.get_known_state()
        for step in steps:
            context = self._context.for_step(step, known_state)
            context._event_loop = threads  # type: ignore[assignment]
            self._in_flight.add(step.key)
            self._threads += 1
            threads.start(partial(_execute_step, context))
        yield from self._active.concurrency_event_iterator(self._context)

    def _handle_items(self) -> Iterator[dg.DagsterEvent]:
        """Handle events until another step may be ready."""
        may_start = False
        while not may_start:
            try:
                item = self._items.get(timeout=self._wait_s())
            except queue.Empty:  # a retry is due, or a pool may have a slot
                return
            if isinstance(item, signal.Signals):
                yield from self._interrupt(item)
            elif isinstance(item, StepEnded):
                yield from self._end(item)
                may_start = True
            else:
                yield item
                self._handle(item)
                may_start = item.is_successful_output and not self._waits_for_success

    def _wait_s(self) -> float | None:
        """Time for which only an event can make a step ready; None if it has no end."""
        if self._pools.has_pending_claims():
            return POOL_POLL_S
        until_retry_s = self._active.sleep_interval()
        return max(until_retry_s, RETRY_POLL_S) if until_retry_s or not self._threads else None

    def _handle(self, event: dg.DagsterEvent) -> None:
        step = str(event.step_key)
        if is_partial(event):
            for output in self._active.get_step_by_key(step).step_outputs:
                self._active.mark_step_produced_output(StepOutputHandle(step, output.name))
            self._active.mark_success(step)
            self._pools.free_step(step)
        else:
            self._active.handle_event(event)
        if event.is_step_success or event.is_step_failure or event.is_step_up_for_retry:
            self._in_flight.discard(step)

    def _end(self, ended: StepEnded) -> Iterator[dg.DagsterEvent]:
        self._threads -= 1
        if ended.error is not None:
            raise ended.error
        yield from self._active.plan_events_iterator(self._context)

    def _interrupt(self, number: signal.Signals | None) -> Iterator[dg.DagsterEvent]:
        """Report the interrupt, then raise DagsterExecutionInterruptedError. `number`: None if it is not known."""
        self._active.mark_interrupted()
        interruption = _interruption_of(self._context, number)
        detaches = self._interrupted(self._context, interruption)
        if interruption is not Interruption.SIGTERM:  # that of a redeployment, after which the work is wanted
            self._context.instance.add_run_tags(self._context.run_id, NOT_AGAIN)
        yield self._interrupted_event(interruption, detaches)
        raise dg.DagsterExecutionInterruptedError

    def _interrupted_event(self, interruption: Interruption, detaches: bool) -> dg.DagsterEvent:
        steps = sorted(name for step in self._in_flight for name in _asset_names(self._context, step))
        named = ", ".join(steps) or "no step"
        if detaches:
            effect = f"this run detaches from {named}, and the cluster keeps computing. "
        else:
            effect = f"the compute of {named} is being stopped. "
        return dg.DagsterEvent.engine_event(
            self._context,
            f"{interruption.value}: {effect}Complete outputs stay; materialize the same again to continue.",
            event_specific_data=EngineEventData.interrupted(steps),
        )


def _execute_step(context: Any) -> Iterator[dg.DagsterEvent]:
    events: list[dg.DagsterEvent] = []
    for event in dagster_event_sequence_for_step(context):
        events.append(event)
        yield event
    yield from _trigger_hook(context, events)


def _capture_logs(context: Any, plan: Any, capture: ExitStack) -> Iterator[dg.DagsterEvent]:
    """Capture one compute log for the whole run: its steps share the streams of the process."""
    manager = context.instance.compute_log_manager
    step_keys = [step.key for step in plan.get_steps_to_execute_in_topo_order()]
    log_key = manager.build_log_key_for_run(context.run_id, uuid.uuid4().hex[:8])
    try:
        with threads_for_tails():
            log_context = capture.enter_context(manager.capture_logs(log_key))
        yield dg.DagsterEvent.capture_logs(context, step_keys, log_key, log_context)
    except Exception:  # a log that cannot be captured is reported in the run and does not end it
        yield from _handle_compute_log_setup_error(context, sys.exc_info())


def _asset_names(context: Any, step_key: str) -> list[str]:
    """The assets of a step of the run, or the step's own name if it has none."""
    handle = context.execution_plan.get_step_by_key(step_key).node_handle
    assets = context.job_def.asset_layer.get_assets_def_for_node(handle)
    return [key.to_user_string() for key in assets.keys] if assets is not None else [step_key]


def _interruption_of(context: Any, number: signal.Signals | None) -> Interruption:
    run = context.instance.get_run_by_id(context.run_id)
    if run is not None and run.status in (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED):
        return Interruption.TERMINATED
    return Interruption.SIGTERM if number == signal.SIGTERM else Interruption.CTRL_C


@contextmanager
def signals_put(put: Callable[[Any], None]) -> Iterator[None]:
    """Call `put` with each of these signals in this block. Python handles signals in the main thread alone: in another
    thread the block changes nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        put(signal.Signals(number))

    handlers = {number: signal.signal(number, handle) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

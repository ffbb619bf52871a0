"""The steps of one run: each in a thread of Dagster's own engine, and all their coroutines in one event loop.

    the caller             starts steps, and takes their events from a queue
    a thread for a step    Dagster's engine executes the step, and waits there for the coroutine of an `async def` asset
    one event loop         in a thread of its own: the coroutines of all steps

The engine runs the coroutine of a step by `run_until_complete` of the step's event loop; `StepThreads` is that event
loop. A thread that waits costs about 60 KB of memory for its stack, and no CPU.

One thread at a time executes the engine's code, under a lock that it releases while it waits for a coroutine. Dagster
1.13.27 sets the process's filters of warnings around each output of a step, and threads that restore them in another
order would leave a filter behind. The lock also bounds the number of threads that want the interpreter: the event loop
would wait for 64 of them in turn, 5 ms each. The body of a plain function is part of the engine's code, so plain
functions run one after the other.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StepEnded:
    """The thread of a step has nothing more to do."""

    error: BaseException | None
    """An error of the engine. An error of the step's own code is an event, not this."""


class StepThreads:
    """Executes at most `count` steps at once. Its block ends when the threads of all steps have ended."""

    def __init__(self, count: int, put: Callable[[Any], None]) -> None:
        """`put` is called in the thread of a step with each event of the step, and with StepEnded after the last."""
        self._put = put
        self._threads = concurrent.futures.ThreadPoolExecutor(count, thread_name_prefix="step")
        self._engine = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._closed = asyncio.Event()
        self._loop_thread = threading.Thread(target=self._run_loop, name="coroutines of steps")
        self._tasks: set[asyncio.Task[None]] = set()
        self._scopes: set[anyio.CancelScope] = set()
        self._cancelled = False

    def __enter__(self) -> StepThreads:
        self._loop_thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._loop.call_soon_threadsafe(self._closed.set)
        self._loop_thread.join()

    def start(self, execute: Callable[[], Iterator[Any]]) -> None:
        """Execute a step in a thread, with the caller's context variables: read the events that `execute` yields."""
        self._threads.submit(contextvars.copy_context().run, self._execute, execute)

    def cancel(self) -> None:
        """Cancel the coroutines of all steps, also of those that start later: at the next `await` that has to wait.

        Their cleanup ends before the threads do. It must shield its own awaits by a scope of anyio.
        """
        self._loop.call_soon_threadsafe(self._cancel_scopes)

    def run_until_complete(self, awaitable: Awaitable[T]) -> T:
        """Return the result of a coroutine. Dagster's engine calls this in the thread of a step."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._loop.call_soon_threadsafe(self._start_task, awaitable, future)
        self._engine.release()
        try:
            return future.result()
        finally:
            self._engine.acquire()

    def _execute(self, execute: Callable[[], Iterator[Any]]) -> None:
        error: BaseException | None = None
        try:
            with self._engine:
                for event in execute():
                    self._put(event)
        except BaseException as raised:  # the caller raises it
            error = raised
        self._put(StepEnded(error=error))

    def _run_loop(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._closed.wait())

    def _start_task(self, awaitable: Awaitable[T], future: concurrent.futures.Future[T]) -> None:
        task = self._loop.create_task(self._settle(awaitable, future))
        self._tasks.add(task)  # the loop holds only a weak reference to it
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, awaitable: Awaitable[T], future: concurrent.futures.Future[T]) -> None:
        scope = anyio.CancelScope()
        self._scopes.add(scope)
        try:
            if self._cancelled:
                scope.cancel()
            with scope:
                result = await awaitable
            if scope.cancelled_caught:
                raise asyncio.CancelledError  # as the coroutine raised it
        except BaseException as error:  # the thread of the step raises it
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            self._scopes.discard(scope)

    def _cancel_scopes(self) -> None:
        self._cancelled = True
        for scope in self._scopes:
            scope.cancel()

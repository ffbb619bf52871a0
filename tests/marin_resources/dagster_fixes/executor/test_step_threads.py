"""Threads of steps: one event loop, one thread in the engine at a time, an end that waits for all."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import anyio
import pytest

from marin_resources.dagster_fixes.executor.step_threads import StepEnded, StepThreads


def run(
    *steps: Callable[[StepThreads], Iterator[Any]],
    at_once: int = 64,
    during: Callable[[StepThreads], None] = lambda threads: None,
) -> list[Any]:
    """Execute the steps, then return what they put: events, and an end for each."""
    items: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with StepThreads(at_once, items.put) as threads:
        for step in steps:
            threads.start(partial(step, threads))
        during(threads)
        found = [items.get(timeout=60)]
        while sum(isinstance(item, StepEnded) for item in found) < len(steps):
            found.append(items.get(timeout=60))
    return found


def errors(items: list[Any]) -> list[BaseException | None]:
    return [item.error for item in items if isinstance(item, StepEnded)]


def test_the_coroutines_of_all_steps_share_one_event_loop() -> None:
    everyone = asyncio.Barrier(200)

    def step(threads: StepThreads) -> Iterator[str]:
        yield "begun"
        threads.run_until_complete(everyone.wait())
        yield "ended"

    items = run(*[step] * 200, at_once=200)
    assert items.count("ended") == 200
    assert errors(items) == [None] * 200


def test_no_two_steps_are_in_the_engine_at_once_though_all_wait_at_once() -> None:
    inside, most, waiting, most_waiting = 0, 0, 0, 0

    async def wait() -> None:
        nonlocal waiting, most_waiting
        waiting += 1
        most_waiting = max(most_waiting, waiting)
        await asyncio.sleep(0.5)
        waiting -= 1

    def step(threads: StepThreads) -> Iterator[str]:
        nonlocal inside, most
        for _ in range(2):
            inside += 1
            most = max(most, inside)
            time.sleep(0.001)
            inside -= 1
            threads.run_until_complete(wait())
        yield "ended"

    run(*[step] * 20)
    assert most == 1
    assert most_waiting > 10


def test_an_error_of_the_engine_is_in_the_end_of_its_step() -> None:
    def bad(threads: StepThreads) -> Iterator[str]:
        yield "begun"
        raise ValueError("no")

    items = run(bad)
    assert items[0] == "begun"
    assert str(errors(items)[0]) == "no"


@pytest.mark.parametrize("error", [ValueError("no"), StopAsyncIteration(), SystemExit(3), KeyboardInterrupt()])
def test_an_error_of_a_coroutine_is_raised_where_the_engine_waits_and_the_loop_stays(error: BaseException) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise error

    async def other() -> str:
        await asyncio.sleep(0.01)
        return "fine"

    def step(threads: StepThreads) -> Iterator[str]:
        try:
            threads.run_until_complete(fail())
        except BaseException as raised:
            yield type(raised).__name__
        yield threads.run_until_complete(other())

    items = run(step)
    assert items[:2] == [type(error).__name__, "fine"]


def test_a_coroutine_has_the_context_variables_of_its_step() -> None:
    variable = contextvars.ContextVar("variable", default="none")

    async def read() -> str:
        return variable.get()

    def step(value: str, threads: StepThreads) -> Iterator[str]:
        variable.set(value)
        yield threads.run_until_complete(read())

    def plain(threads: StepThreads) -> Iterator[str]:
        yield threads.run_until_complete(read())

    variable.set("of the caller")
    items = run(partial(step, "a"), partial(step, "b"), plain)
    assert {item for item in items if isinstance(item, str)} == {"a", "b", "of the caller"}


def test_a_cancellation_reaches_all_steps_and_their_cleanup_ends() -> None:
    cleaned: list[int] = []

    async def compute(number: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            with anyio.CancelScope(shield=True):
                await asyncio.sleep(0.05)
                cleaned.append(number)

    def step(number: int, threads: StepThreads) -> Iterator[str]:
        yield "begun"
        threads.run_until_complete(compute(number))

    def cancel(threads: StepThreads) -> None:
        time.sleep(0.5)
        threads.cancel()

    began_s = time.monotonic()
    items = run(*(partial(step, number) for number in range(64)), during=cancel)
    assert time.monotonic() - began_s < 30
    assert sorted(cleaned) == list(range(64))
    assert all(isinstance(error, asyncio.CancelledError) for error in errors(items))


def test_a_cancellation_that_a_coroutine_swallows_reaches_its_next_wait() -> None:
    async def stubborn() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    def step(threads: StepThreads) -> Iterator[str]:
        threads.run_until_complete(stubborn())
        yield "never"

    def cancel(threads: StepThreads) -> None:
        time.sleep(0.2)
        threads.cancel()

    items = run(step, during=cancel)
    assert isinstance(errors(items)[0], asyncio.CancelledError)


def test_after_a_cancellation_a_coroutine_that_waits_is_cancelled_and_one_that_ends_at_once_is_not() -> None:
    cancelled = threading.Event()

    async def at_once() -> str:
        return "result"

    async def waits() -> None:
        await asyncio.sleep(60)

    def step(threads: StepThreads) -> Iterator[str]:
        cancelled.wait(30)
        yield threads.run_until_complete(at_once())
        threads.run_until_complete(waits())

    def cancel(threads: StepThreads) -> None:
        threads.cancel()
        cancelled.set()

    items = run(step, during=cancel)
    assert items[0] == "result"
    assert isinstance(errors(items)[0], asyncio.CancelledError)


def test_the_block_leaves_no_thread() -> None:
    before = threading.active_count()

    async def nothing() -> None: ...

    def step(threads: StepThreads) -> Iterator[str]:
        threads.run_until_complete(nothing())
        yield "ended"

    run(step, step)
    assert threading.active_count() == before

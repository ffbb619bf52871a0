"""Send many requests, a number of them at once, and take the answers as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from queue import SimpleQueue
from typing import Any

Answer = dict[str, Any]


def send_all(
    send: Callable[[Mapping[str, Any]], Answer],
    bodies: Iterable[Mapping[str, Any]],
    on_answer: Callable[[int, Answer], None],
    *,
    concurrency: int,
) -> None:
    """Call `send` with all bodies, `concurrency` at once; call `on_answer` with the number of a body and its answer.

    `bodies` is read as far as they are sent. Raises as `send` does, after the answers that have come: then nothing
    more is sent.
    """
    waiting: SimpleQueue[tuple[int, Mapping[str, Any]] | None] = SimpleQueue()
    done: SimpleQueue[tuple[int, Answer | BaseException]] = SimpleQueue()
    stopped = threading.Event()
    for _ in range(concurrency):  # daemons: a step that is stopped does not wait for its answers
        threading.Thread(
            target=_send_waiting, args=(send, waiting, done, stopped), name="requests", daemon=True
        ).start()
    numbered, under_way = enumerate(bodies), 0
    try:
        while True:
            while under_way < 2 * concurrency and (following := next(numbered, None)):
                waiting.put(following)
                under_way += 1
            if not under_way:
                return
            number, answer = done.get()
            under_way -= 1
            if isinstance(answer, BaseException):
                _take_done(done, on_answer)
                raise answer
            on_answer(number, answer)
    finally:
        stopped.set()
        for _ in range(concurrency):
            waiting.put(None)


def _send_waiting(
    send: Callable[[Mapping[str, Any]], Answer],
    waiting: SimpleQueue[tuple[int, Mapping[str, Any]] | None],
    done: SimpleQueue[tuple[int, Answer | BaseException]],
    stopped: threading.Event,
) -> None:
    while (item := waiting.get()) is not None and not stopped.is_set():
        try:
            done.put((item[0], send(item[1])))
        except BaseException as error:  # the thread that waits raises it
            done.put((item[0], error))


def _take_done(done: SimpleQueue[tuple[int, Answer | BaseException]], on_answer: Callable[[int, Answer], None]) -> None:
    while not done.empty():
        number, answer = done.get()
        if not isinstance(answer, BaseException):
            on_answer(number, answer)


def message_of(answer: Any) -> str:
    """The reason in an answer of requests with an error."""
    try:
        content = answer.json()
        return str(content.get("error", {}).get("message") or content.get("message") or content)[:500]
    except (ValueError, AttributeError):
        return str(answer.text[:500])

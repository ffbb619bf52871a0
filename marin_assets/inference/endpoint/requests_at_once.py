"""Send many requests, a number of them at once, and take the answers as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
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
    numbered = enumerate(bodies)
    pending: dict[Future[Answer], int] = {}
    pool = ThreadPoolExecutor(concurrency, thread_name_prefix="requests")
    try:
        while True:
            while len(pending) < 2 * concurrency and (following := next(numbered, None)):
                pending[pool.submit(send, following[1])] = following[0]
            if not pending:
                return
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda sent: sent.exception() is not None):
                on_answer(pending.pop(future), future.result())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a step that is stopped does not wait for its answers


def message_of(answer: Any) -> str:
    """The reason in an answer of requests with an error."""
    try:
        content = answer.json()
        return str(content.get("error", {}).get("message") or content.get("message") or content)[:500]
    except (ValueError, AttributeError):
        return str(answer.text[:500])

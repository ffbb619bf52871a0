"""A page that is sent while it is written: the first hit of a search is shown before the last one is reached.

A thread writes the page, and the event loop sends it. If the browser closes the connection, the watch of the request
ends the thread's next read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import anyio
import anyio.from_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from marin_assets.browse.limits import RequestWatch, Threads
from marin_assets.browse.render import render
from marin_resources.types.errors import MarinError

PART_CHARACTERS = 16 * 1024
"""Characters after which the text is sent. It is also sent when the writer is about to wait."""

Write = Callable[[Callable[[], None]], Iterator[str]]
"""Takes what it calls before it waits; yields the pieces of the page."""


class StreamedPage(Response):
    """The response of a page that `write` writes in a thread."""

    media_type = "text/html"

    def __init__(self, write: Write, threads: Threads, watch: RequestWatch) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._write, self._threads, self._watch = write, threads, watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with anyio.create_task_group() as group:
            group.start_soon(watch_connection, receive, self._watch)
            try:
                await self._threads.run(lambda: self._send_all(send), self._watch)
            except MarinError as error:  # no thread was free
                await _send(send, render("stopped", {"sentence": str(error)}))
            finally:
                group.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _send_all(self, send: Send) -> None:
        pieces: list[str] = []

        def flush() -> None:
            body = "".join(pieces).encode("utf-8", "backslashreplace")
            pieces.clear()
            if body:
                anyio.from_thread.run(_send, send, body)

        characters = 0
        for piece in self._write(flush):
            pieces.append(piece)
            characters += len(piece)
            if characters > PART_CHARACTERS:
                flush()
                characters = 0
        flush()


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def watch_connection(receive: Receive, watch: RequestWatch) -> None:
    """Note in the watch when the browser closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    watch.gone.set()

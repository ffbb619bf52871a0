"""HTTP in front of it all: bodies are streamed in and out."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

from aiohttp import web

from fake_gcs.call import Answer, Call, json_or_text
from fake_gcs.kept import Kept
from fake_gcs.refusals import RefusalError
from fake_gcs.routes import Api

PIECE = 1 << 20
"""Larger bodies are sent in pieces of this size, so that others are served in between."""


class Server:
    def __init__(self, origin: str, kept: Kept | None = None) -> None:
        self.api = Api(origin)
        if kept is not None:
            kept.load(self.api.store)

    async def listen(self, bound: socket.socket) -> None:
        runner = web.ServerRunner(web.Server(self.handle, auto_decompress=False, access_log=None, read_bufsize=PIECE))  # type: ignore[arg-type]
        await runner.setup()
        await web.SockSite(runner, bound, backlog=1024).start()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")  # curl waits for it
        call = Call(request.method, request.raw_path, request.headers, _pieces(request))
        return await _send(request, await self._answer(call))

    async def _answer(self, call: Call) -> Answer:
        try:
            return await self.answer(call)
        except RefusalError as refusal:
            async for _ in call.pieces:
                pass  # a client that is still sending would see a broken connection instead of the answer
            body = refusal.message.encode() if call.wants_media() and refusal.status != 304 else refusal.body()
            return Answer(status=refusal.status, headers=json_or_text(call, body), body=body)

    async def answer(self, call: Call) -> Answer:
        """Raises RefusalError."""
        return await self.api.answer(call)


async def _pieces(request: web.BaseRequest) -> AsyncIterator[bytes]:
    async for piece in request.content.iter_any():
        yield piece


async def _send(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    if len(answer.body) <= PIECE:
        return web.Response(status=answer.status, headers=answer.headers, body=bytes(answer.body))
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.content_length = len(answer.body)
    await response.prepare(request)
    view = memoryview(answer.body)
    for start in range(0, len(view), PIECE):
        await response.write(view[start : start + PIECE])
    await response.write_eof()
    return response

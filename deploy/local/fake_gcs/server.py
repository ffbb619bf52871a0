"""HTTP in front of it all: bodies are streamed in and out, and faults strike."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

from aiohttp import web

from fake_gcs.call import Answer, Call, json_or_text
from fake_gcs.door import Door
from fake_gcs.faults import Fault
from fake_gcs.kept import Kept
from fake_gcs.refusals import RefusalError, unavailable
from fake_gcs.routes import Api, place_of
from fake_gcs.uploads import multipart_of

PIECE = 1 << 20
"""Larger bodies are sent in pieces of this size, so that others are served in between."""


class DroppedError(Exception):
    """The connection is to be closed without an answer."""


class Server:
    def __init__(self, origin: str, kept: Kept | None = None) -> None:
        self._api = Api(origin)
        if kept is not None:
            kept.load(self._api.store)
        self._door = Door(self._api)

    async def listen(self, bound: socket.socket) -> None:
        runner = web.ServerRunner(web.Server(self._handle, auto_decompress=False, access_log=None, read_bufsize=PIECE))  # type: ignore[arg-type]
        await runner.setup()
        await web.SockSite(runner, bound, backlog=1024).start()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.startswith("/_"):
            return web.Response(body=self._door.answer(request.path, await request.read()))
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")  # curl waits for it
        call = Call(request.method, request.raw_path, request.headers, _pieces(request))
        try:
            return await _send(request, await self._answer(call))
        except DroppedError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()

    async def _answer(self, call: Call) -> Answer:
        try:
            return await self._answer_or_fail(call)
        except RefusalError as refusal:
            async for _ in call.pieces:
                pass  # a client that is still sending would see a broken connection instead of the answer
            body = refusal.message.encode() if call.wants_media() and refusal.status != 304 else refusal.body()
            return Answer(status=refusal.status, headers=json_or_text(call, body), body=body)

    async def _answer_or_fail(self, call: Call) -> Answer:
        bucket, subject = await self._subject(call)
        self._door.note(bucket, f"{call.method} {subject}")
        fault = self._door.faults.of(call.method, bucket, subject)
        if fault is None:
            return await self._api.answer(call)
        if not fault.after:
            await _strike(fault)
        answer = await self._api.answer(call)
        if fault.after:
            await _strike(fault)
        return answer

    async def _subject(self, call: Call) -> tuple[str, str]:
        """The bucket that a request is about, and its address with the object's name, which may be in the body."""
        subject = call.readable_target()
        try:
            kind, _, names = place_of(call)
            bucket = names[0] if names else ""
            return bucket, f"{subject} {await _name_in_body(call) if kind == 'upload' else ''}".rstrip()
        except RefusalError:
            return "", subject


async def _name_in_body(call: Call) -> str:
    if call.query.get("uploadType") == "multipart":
        return str((await multipart_of(call))[0].get("name", ""))
    if call.query.get("uploadType") == "resumable" and "upload_id" not in call.query:
        return str((await call.read_json()).get("name", ""))
    return ""


async def _strike(fault: Fault) -> None:
    await asyncio.sleep(fault.delay_s)
    if fault.drop:
        raise DroppedError
    if fault.status is not None:
        raise unavailable(fault.status)


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

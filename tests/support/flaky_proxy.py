"""A TCP proxy on loopback that fails like networks and gateways when a test says so.

with FlakyProxy(cluster.address) as proxy:
    JobsApi(proxy.address, token)
    proxy.cut()      # who connects is refused, who is connected is dropped
    proxy.freeze()   # connections are taken, and nothing is ever answered
    proxy.fail(502)  # each request is answered with this, as a gateway does whose backend is away
    proxy.mend()     # all is well again, at the same address
    proxy.hold_answer_to(b"POST /api/jobs")     # passes the next such request on, and then no answer
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from marin_resources.ray_tpu.cluster.local.head import free_ports

CHUNK_BYTES = 65_536


class FlakyProxy:
    def __init__(self, upstream: str) -> None:
        """In front of what answers at the URL `upstream`."""
        url = urlsplit(upstream)
        self._upstream = (url.hostname, url.port)
        (self._port,) = free_ports(1)
        self.address = f"http://127.0.0.1:{self._port}"
        self._status: int | None = None
        self._held: bytes | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="flaky-proxy", daemon=True)
        self._thread.start()
        self._flows = asyncio.Event()
        self.mend()

    def cut(self) -> None:
        self._do(self._cut())

    def freeze(self) -> None:
        self._do(self._set(listens=True, flows=False, status=None))

    def fail(self, status: int) -> None:
        self._do(self._cut())  # who is connected asks again, and hears it
        self._do(self._set(listens=True, flows=True, status=status))

    def mend(self) -> None:
        self._do(self._set(listens=True, flows=True, status=None))

    def hold_answer_to(self, request: bytes) -> None:
        self._held = request

    def close(self) -> None:
        self._do(self._cut())
        self._do(self._end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> FlakyProxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self._flows.set()  # who waits finds its connection gone

    async def _set(self, *, listens: bool, flows: bool, status: int | None) -> None:
        self._status = status
        (self._flows.set if flows else self._flows.clear)()
        if listens and self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def _end_tasks(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._flows.wait()
            if self._status is not None:
                await self._answer(reader, writer, self._status)
            else:
                await self._join(reader, writer)
        self._drop(writer)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int) -> None:
        await reader.readuntil(b"\r\n\r\n")
        page = f"<html><h1>{status} from the gateway</h1></html>".encode()
        head = f"HTTP/1.1 {status} Away\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n"
        writer.write(head.encode() + b"Connection: close\r\n\r\n" + page)
        await writer.drain()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(*self._upstream)
        self._writers.add(up_writer)
        ways = [asyncio.create_task(self._pass_on(*way)) for way in ((reader, up_writer), (up_reader, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        self._drop(up_writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(CHUNK_BYTES):
                await self._flows.wait()
                if self._held is not None and data.startswith(self._held):
                    self._held = None
                    self._flows.clear()
                writer.write(data)
                await writer.drain()

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.close()

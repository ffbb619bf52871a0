"""`python -m fake_gcs FD`: serve on a listening socket that was inherited."""

from __future__ import annotations

import asyncio
import socket
import sys

from aiohttp import web

from fake_gcs.server import FakeGCS


async def _serve(fd: int) -> None:
    app = web.Application(client_max_size=4 << 30)
    app.router.add_route("*", "/{tail:.*}", FakeGCS().handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, socket.socket(fileno=fd)).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))

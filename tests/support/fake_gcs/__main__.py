"""`python -m fake_gcs FD`: serve on a bound socket that was inherited, until standard input ends.

Says "ready" on standard output once it listens.
"""

from __future__ import annotations

import asyncio
import socket
import sys

from fake_gcs.server import Server


async def _serve(fd: int) -> None:
    bound = socket.socket(fileno=fd)
    host, port = bound.getsockname()
    await Server(f"http://{host}:{port}").listen(bound)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))

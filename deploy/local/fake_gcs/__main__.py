"""`python -m fake_gcs --port PORT --file FILE`: serve on loopback until it is killed, and keep all in the file.

Prints "ready" on standard output once it listens.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from pathlib import Path

from fake_gcs.kept import Kept
from fake_gcs.server import Server


async def _serve(bound: socket.socket, kept: Kept) -> None:
    host, port = bound.getsockname()
    await Server(f"http://{host}:{port}", kept).listen(bound)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    asyncio.run(_serve(_bound(options.port), Kept(options.file)))

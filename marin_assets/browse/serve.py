"""Serve the data browser, by default on this machine alone, and open a browser window at an address of it."""

from __future__ import annotations

import logging
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence

from marin_assets.browse.limits import Limits

HOST = "127.0.0.1"
LONGEST_REQUEST_BYTES = 32 * 1024
ENDING_S = 3


def listen(port: int, host: str = HOST) -> socket.socket:
    """A socket that listens at an address, by default for this machine alone; port 0: a free one.

    Raises OSError if it is taken.
    """
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


def serve(
    listening: socket.socket,
    prefixes: Sequence[str],
    *,
    hosts: Sequence[str] = (),
    limits: Limits | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serve until Ctrl-C or SIGTERM. `on_start` is called when connections are accepted."""
    import uvicorn  # late, as starlette: 0.3 s, which no other verb has to wait for

    from marin_assets.browse.app import create_app

    config = uvicorn.Config(
        create_app(prefixes, hosts=hosts, limits=limits),
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=LONGEST_REQUEST_BYTES,
        http="h11",
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=ENDING_S,
    )
    server = uvicorn.Server(config)
    on_start()  # the socket listens already, so a connection waits for the loop
    server.run(sockets=[listening])


def open_browser(page: str) -> None:
    """Open the address in a browser, if this machine has one, without waiting for it."""
    threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()

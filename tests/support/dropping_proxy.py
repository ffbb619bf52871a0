"""A proxy in front of a server that speaks HTTP: connections break before a request gets there, or before its answer
comes back."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class DroppingProxy:
    """Takes one request a connection, in full, before it passes it on: an answer closes its connection."""

    def __init__(self, url: str) -> None:
        self._server = (urlsplit(url).hostname, urlsplit(url).port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._drops: list[tuple[str, bool]] = []
        """The method of a request, and whether it gets to the server."""
        self.requests: list[str] = []
        """The first line of each."""
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self, *, method: str, after: bool, times: int = 1) -> None:
        """Let the next requests by `method` go unanswered, after their effect or before it."""
        self._drops += [(method, after)] * times

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._pass_on, args=[connection], daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            request = _one_request(client)
            if not request:
                return
            self.requests.append(request.split(b"\r\n", 1)[0].decode())
            drop = self._its_drop(request)
            if drop is not None and not drop[1]:
                return
            with socket.create_connection(self._server) as server:
                server.sendall(_asking_to_close(request))
                answer = b"".join(iter(lambda: server.recv(1 << 16), b""))
            if drop is None:
                client.sendall(answer)

    def _its_drop(self, request: bytes) -> tuple[str, bool] | None:
        for drop in self._drops:
            if request.startswith(drop[0].encode() + b" "):
                self._drops.remove(drop)
                return drop
        return None


def _one_request(client: socket.socket) -> bytes:
    """Empty if the client closed."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += (piece := client.recv(1 << 16))
        if not piece:
            return b""
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"100-continue" in fields.get(b"expect", b""):
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    while len(body) < int(fields.get(b"content-length", 0)):
        body += client.recv(1 << 16)
    return head + b"\r\n\r\n" + body


def _asking_to_close(request: bytes) -> bytes:
    """The body is here already, so the server need not ask for it; and its answer is over when it closes."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"expect:", b"connection:"))]
    return b"\r\n".join([*lines, b"Connection: close", b"", b""]) + body

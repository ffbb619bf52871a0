"""The data browser on loopback, in this process, and requests to it as a person's browser sends them."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urlencode

import uvicorn

from marin_assets.browse.app import create_app
from marin_assets.browse.limits import Limits
from marin_assets.browse.serve import HOST, listen


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def html(self) -> str:
        return self.body.decode()

    @property
    def text(self) -> str:
        """The text that a person reads, with single spaces."""
        reader = _Text()
        reader.feed(self.html)
        return " ".join("".join(reader.texts).split())

    @property
    def sentence(self) -> str:
        """The sentence of a page that shows an error."""
        return self.text.partition(f"Not shown ({self.status})")[2].strip() or self.html.strip()


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("dd", "dt", "li", "p", "td", "th", "tr"):
            self.texts.append(" ")


class Browser:
    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, page: str, /, **query: object) -> Answer:
        return self.send("GET", f"/{page}?{urlencode(query, doseq=True)}" if query else f"/{page}")

    def send(self, method: str, target: str, headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        try:
            connection.request(method, target, headers=headers or {})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()


@contextmanager
def browsing(*prefixes: str, hosts: tuple[str, ...] = (), limits: Limits | None = None) -> Iterator[Browser]:
    """Serve the data browser for these prefixes."""
    listening = listen(0)
    app = create_app(prefixes, hosts=hosts, limits=limits)
    config = uvicorn.Config(app, log_level="critical", lifespan="off", http="h11", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield Browser(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()

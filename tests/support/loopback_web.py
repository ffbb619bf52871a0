"""A web of 50 hosts on loopback, with every trap that a crawler meets. Each host has an address of its own, 127.0.0.2
on.

    with loopback_web() as web:
        web.urls, web.expected      what to fetch, and the outcome of each address
        web.hosts                   host -> address, for the crawler's own resolver
        web.requests                what arrived: (time, host, path, User-Agent)

`python loopback_web.py CONFIG`: crawl in a process of its own; the config's fields are JSON. It prints the counts.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

Send = Callable[[bytes], Awaitable[None]]
HOSTS = 50
PAGES = 3
BOMB = gzip.compress(b"<p>" + b"0" * 50_000_000, 9)
LATE = "late"
"""A path that a robots.txt forbids from its second answer on."""


def page(title: str, links: str = "") -> bytes:
    text = f"{title} has owls that hunt at night. " * 8
    return f"<html><head><title>{title}</title></head><body><p>{text}</p>{links}</body></html>".encode()


def answer(body: bytes, status: str = "200 OK", kind: str = "text/html; charset=utf-8", **headers: str) -> bytes:
    lines = {"Content-Type": kind, "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def redirect(target: str) -> bytes:
    return answer(b"moved", "302 Found", Location=target)


class LoopbackWeb:
    """The hosts, their traps, and what was requested of them."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.names = [f"h{number:02d}.example" for number in range(HOSTS)]
        self.hosts = {name: f"127.0.0.{number + 2}" for number, name in enumerate(self.names)}
        self.hosts |= {"inside.example": "10.0.0.1", "metadata.example": "169.254.169.254"}
        self.requests: list[tuple[float, str, str, str]] = []
        self.open: Counter[str] = Counter()
        self.most_open = 0
        self.times_at: dict[str, list[float]] = defaultdict(list)
        """Address -> times of requests."""
        self.open_at: Counter[str] = Counter()
        self.most_open_at = 0
        """Requests to one address at once."""
        self.seen: Counter[tuple[str, str]] = Counter()
        self.expected: dict[str, str] = {}
        self._fill()

    @property
    def urls(self) -> list[str]:
        return list(self.expected)

    def url(self, name: str, path: str) -> str:
        return f"http://{name}:{self.port}/{path}"

    def times_of(self) -> dict[str, list[float]]:
        times = defaultdict(list)
        for at, host, _, _ in self.requests:
            times[host].append(at)
        return times

    def least_gap_s(self) -> float:
        """Seconds between two requests to a host, or to an address."""
        every = (*self.times_of().values(), *self.times_at.values())
        return min(b - a for times in every for a, b in pairwise(times))

    def _fill(self) -> None:
        for number, name in enumerate(self.names):
            for index in range(PAGES):
                self.expected[self.url(name, f"p{index}")] = self.manner(number, f"p{index}")
            for path, outcome in TRAPS[number % len(TRAPS)][1].items():
                self.expected[self.url(name, path)] = outcome
        self.expected[self.url("inside.example", "")] = "refused_address"
        self.expected["http://169.254.169.254/latest/meta-data"] = "refused_address"
        self.expected[self.url("nowhere.invalid", "")] = "unresolved"

    def manner(self, number: int, path: str) -> str:
        return {"robots_closed": "robots", "robots_5xx": "robots_unreachable", "long_delay": "crawl_delay"}.get(
            TRAPS[number % len(TRAPS)][0], "fetched"
        )

    async def respond(self, host: str, path: str, send: Send) -> None:
        """Send what a host answers."""
        manner = TRAPS[self.names.index(host) % len(TRAPS)][0] if host in self.names else ""
        self.seen[host, path] += 1
        if path == "robots.txt":
            await send(self.robots(host, manner))
            return
        if path.startswith("p") and path[1:].isdecimal():
            links = f'<a href="{self.url("h07.example", "p9")}">a page of another site</a>'
            await send(answer(page(f"{host} {path}", links)))
            return
        if path in TRICKS:
            await TRICKS[path](self, host, path, send)
            return
        if path.startswith("day/"):
            day = int(path[4:])
            await send(answer(page(f"day {day}", f'<a href="/day/{day + 1}">next</a>')))
            return
        if path.startswith("hop/"):
            await send(redirect(f"/hop/{int(path[4:]) + 1}"))
            return
        await send(answer(b"gone", "404 Not Found"))

    def robots(self, host: str, manner: str) -> bytes:
        count = self.seen[host, "robots.txt"]
        texts = {
            "robots_closed": "User-agent: OwlBot/2.0\nDisallow: /\n\nUser-agent: *\nAllow: /\n",
            "robots_bom": "\ufeffUser-agent: *\nDisallow: /forbidden\n",
            "robots_changes": "User-agent: *\nDisallow: /forbidden\n" + ("Disallow: /late\n" if count > 1 else ""),
            "robots_large": "# " + "x" * 600_000 + "\nUser-agent: *\nDisallow: /\n",
            "delay": "User-agent: *\nCrawl-delay: 0.3\nDisallow: /forbidden\n",
            "long_delay": "User-agent: *\nCrawl-delay: 3600\n",
            "plain": "User-agent: *\nDisallow: /forbidden$\nAllow: /\n",
        }
        if manner == "robots_5xx":
            return answer(b"down", "500 Internal Server Error")
        if manner == "robots_ring":
            return redirect("/robots.txt")
        if manner not in texts:
            return answer(b"none", "404 Not Found")
        return answer(texts[manner].encode(), kind="text/plain")


async def _drip(web: LoopbackWeb, host: str, path: str, send: Send) -> None:
    await send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    for _ in range(2000):
        await send(b"<")
        await asyncio.sleep(0.05)


async def _drip_headers(web: LoopbackWeb, host: str, path: str, send: Send) -> None:
    await send(b"HTTP/1.1 200 OK\r\n")
    for number in range(2000):
        await send(f"X-{number}: y\r\n".encode())
        await asyncio.sleep(0.05)


async def _endless(web: LoopbackWeb, host: str, path: str, send: Send) -> None:
    await send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    while True:
        await send(b"0" * 65536)


def _always(*answers: bytes) -> Any:
    """The answers in turn; the last one from then on."""

    async def respond(web: LoopbackWeb, host: str, path: str, send: Send) -> None:
        await send(answers[min(web.seen[host, path], len(answers)) - 1])

    return respond


async def _away(web: LoopbackWeb, host: str, path: str, send: Send) -> None:
    """A page of the next host, which is not listed."""
    await send(redirect(web.url(web.names[(web.names.index(host) + 1) % HOSTS], f"p7{web.names.index(host):02d}")))


CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n%x\r\n"
    b"%s\r\n0\r\n\r\n"
) % (len(gzip.compress(page("chunks"), mtime=0)), gzip.compress(page("chunks"), mtime=0))
JAPANESE = "<html><head><meta charset=shift_jis></head><body><p>ふくろうは夜に狩りをする。</p></body></html>"
TRICKS: dict[str, Any] = {
    "late": _always(answer(page("late"))),
    "forbidden": _always(answer(page("forbidden"))),
    "ring/a": _always(redirect("/ring/b")),
    "ring/b": _always(redirect("/ring/c")),
    "ring/c": _always(redirect("/ring/a")),
    "self": _always(redirect("/self")),
    "drip": _drip,
    "drip_headers": _drip_headers,
    "endless": _endless,
    "long": _always(answer(page("long")).replace(b"Content-Length: ", b"Content-Length: 9")),
    "short": _always(answer(page("short")[:200]) + b"more than was declared"),
    "bomb": _always(answer(BOMB, Content_Encoding="gzip")),
    "busy": _always(answer(b"busy", "429 Too Many Requests", Retry_After="1"), answer(page("busy"))),
    "tired": _always(answer(b"tired", "503 Service Unavailable"), answer(page("tired"))),
    "broken": _always(answer(b"broken", "500 Internal Server Error")),
    "inside": _always(redirect("http://inside.example/")),
    "metadata": _always(redirect("http://169.254.169.254/latest/meta-data")),
    "local": _always(redirect("http://localhost/")),
    "file": _always(redirect("file:///etc/passwd")),
    "japanese": _always(answer(JAPANESE.encode("cp932"), kind="text/html")),
    "chunks": _always(CHUNKED),
    "film": _always(answer(b"0" * 1000, kind="video/mp4")),
    "noise": _always(b"\x16\x03\x01 this is no HTTP\r\n\r\n"),
    "nothing": _always(b""),
    "away": _away,
    "listed": _always(redirect("/p0")),
    "empty": _always(b"HTTP/1.1 204 No Content\r\n\r\n"),
}
TRAPS: tuple[tuple[str, dict[str, str]], ...] = (
    ("plain", {"forbidden": "robots", "gone": "status", "listed": "redirected", "away": "fetched"}),
    ("rings", {"ring/a": "redirect_loop", "self": "redirect_loop", "hop/1": "too_many_redirects"}),
    ("drips", {"drip": "slow", "drip_headers": "slow"}),
    ("lengths", {"long": "cut", "short": "fetched", "endless": "too_large", "bomb": "too_large"}),
    ("busy", {"busy": "fetched", "tired": "fetched", "broken": "server_error"}),
    ("robots_changes", {"forbidden": "robots"}),
    ("delay", {"forbidden": "robots"}),
    (
        "inward",
        {"inside": "refused_address", "metadata": "redirected", "local": "bad_redirect", "file": "bad_redirect"},
    ),
    ("charsets", {"japanese": "fetched", "chunks": "fetched", "day/1": "fetched", "film": "content_type"}),
    ("robots_closed", {}),
    ("robots_5xx", {}),
    ("robots_bom", {"forbidden": "robots"}),
    ("robots_ring", {"empty": "status"}),
    ("robots_large", {}),
    ("noise", {"noise": "bad_answer", "nothing": "connection"}),
    ("long_delay", {}),
)
"""Manner of the hosts with a number, and the outcomes of its own paths."""


@contextmanager
def trick(path: str, respond: Any) -> Iterator[None]:
    """A path that answers by `respond(web, host, path, send)` until the block ends."""
    TRICKS[path] = respond
    try:
        yield
    finally:
        del TRICKS[path]


@contextmanager
def loopback_web() -> Iterator[LoopbackWeb]:
    """It serves until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        web = LoopbackWeb(probe.getsockname()[1])
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    thread = threading.Thread(target=_serve, args=(web, loop, ready), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield web
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)


def _serve(web: LoopbackWeb, loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = ""

        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            at = time.monotonic()
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines if line)
            host = headers["Host"].partition(":")[0]
            path = first.split()[1].removeprefix("/")
            web.requests.append((at, host, path, headers.get("User-Agent", "")))
            address = writer.get_extra_info("sockname")[0]
            web.times_at[address].append(at)
            for opened, key in ((web.open, host), (web.open_at, address)):
                opened[key] += 1
            web.most_open = max(web.most_open, web.open[host])
            web.most_open_at = max(web.most_open_at, web.open_at[address])
            # a client that hangs up has no connection any more, though the answer is not at its end
            answer, gone = asyncio.ensure_future(web.respond(host, path, send)), asyncio.ensure_future(reader.read())
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            web.open[host] -= 1
            web.open_at[address] -= 1
            gone.cancel()
            await answer
        with suppress(OSError, asyncio.CancelledError):
            writer.close()
            await writer.wait_closed()

    async def start() -> None:
        addresses = [address for address in web.hosts.values() if address.startswith("127.")]
        await asyncio.start_server(handle, addresses, web.port, limit=2**16)
        ready.set()

    asyncio.set_event_loop(loop)
    loop.run_until_complete(start())
    loop.run_forever()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def main() -> None:
    from marin_assets.stages.download.fetch.fetch_pages import FetchPagesConfig, fetch_pages
    from marin_assets.step.values import unwrap_versioned_value

    print(json.dumps(fetch_pages(unwrap_versioned_value(FetchPagesConfig(**json.loads(sys.argv[1]))))))


if __name__ == "__main__":
    main()

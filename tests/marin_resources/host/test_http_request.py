"""Requests end within their time limit, and their secrets stay with their origin, against servers on loopback."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from marin_resources.host.http_request import OtherOriginError, TooSlowError, answer_to, is_same_origin


class Site:
    """Redirects each path of `moved`, drips at /drip and /drip-headers, and has an endless body at /endless."""

    def __init__(self) -> None:
        self.moved: dict[str, tuple[int, str]] = {}
        self.seen: list[tuple[str, str, bytes, str | None]] = []
        """Method, path, body and Authorization of each request."""
        self.ended = threading.Event()
        """Set when a client has closed the connection of a drip."""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                site.seen.append((self.command, self.path, body, self.headers["Authorization"]))
                if self.path in site.moved:
                    status, location = site.moved[self.path]
                    self.send_response(status)
                    self.send_header("Location", location)
                    self.end_headers()
                elif self.path.startswith("/drip"):
                    self.drip(b"X: " if "headers" in self.path else b"\r\n")
                else:
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(b"there" if self.path != "/endless" else b"0" * 1_000_000)

            do_GET = do_POST = do_HEAD = answer

            def drip(self, begin: bytes) -> None:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n" + begin)
                try:
                    while True:
                        self.wfile.write(b"x")
                        time.sleep(0.05)
                except OSError:
                    site.ended.set()

            def log_message(self, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def sites() -> Iterator[tuple[Site, Site]]:
    both = Site(), Site()
    for site in both:
        threading.Thread(target=site.server.serve_forever, args=(0.02,), daemon=True).start()
    yield both
    for site in both:
        site.server.shutdown()
        site.server.server_close()


def request(url: str, data: bytes | None = None, method: str | None = None) -> urllib.request.Request:
    return urllib.request.Request(url, data, {"Authorization": "Bearer s3cr3t"}, method=method)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(("method", "data"), [("POST", b"message"), ("GET", None), ("HEAD", None)])
def test_a_redirect_within_an_origin_keeps_method_body_and_token(
    sites: tuple[Site, Site], status: int, method: str, data: bytes | None
) -> None:
    site, _ = sites
    site.moved = {"/old": (status, "/new")}
    assert answer_to(request(f"{site.url}/old", data, method), 10, 100).url == f"{site.url}/new"
    assert site.seen[-1] == (method, "/new", data or b"", "Bearer s3cr3t")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_origin_takes_no_token(sites: tuple[Site, Site], status: int) -> None:
    site, other = sites
    site.moved = {"/old": (status, f"{other.url}/new")}
    other.moved = {"/new": (status, f"{site.url}/back")}
    assert answer_to(request(f"{site.url}/old"), 10, 100).body == b"there"
    assert other.seen == [("GET", "/new", b"", None)]
    assert site.seen[-1] == ("GET", "/back", b"", None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_body_goes_to_no_other_origin(sites: tuple[Site, Site], status: int) -> None:
    site, other = sites
    site.moved = {"/old": (status, f"{other.url}/new")}
    with pytest.raises(urllib.error.HTTPError if status == 303 else OtherOriginError):
        answer_to(request(f"{site.url}/old", b"message"), 10)
    assert other.seen == []


def test_a_redirect_without_an_end_or_to_a_file_is_an_error(sites: tuple[Site, Site]) -> None:
    site, _ = sites
    site.moved = {"/old": (302, "/old"), "/file": (302, "file:///etc/passwd"), "/ftp": (302, "ftp://127.0.0.1/x")}
    for path in site.moved:
        with pytest.raises(urllib.error.HTTPError):
            answer_to(request(f"{site.url}{path}"), 10)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("path", ["/drip", "/drip-headers"])
def test_an_answer_that_drips_ends_in_time_and_so_does_its_connection(sites: tuple[Site, Site], path: str) -> None:
    site, _ = sites
    began_s = time.monotonic()
    with pytest.raises(TooSlowError):
        answer_to(request(f"{site.url}{path}"), 0.5, 10**9)
    assert time.monotonic() - began_s < 10
    assert site.ended.wait(20)


def test_no_more_of_a_body_is_read_than_is_wanted(sites: tuple[Site, Site]) -> None:
    site, _ = sites
    assert len(answer_to(request(f"{site.url}/endless"), 10, 1000).body) == 1000
    assert answer_to(request(f"{site.url}/endless"), 10).body == b""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a/x", "http://a/y", True),
        ("http://a/x", "https://a/y", True),
        ("http://a:80/x", "https://a:443/y", True),
        ("https://a/x", "http://a/y", False),
        ("http://a:8080/x", "https://a/y", False),
        ("http://a/x", "http://a:81/x", False),
        ("https://a/x", "https://a.b/x", False),
        ("https://A/x", "https://a/x", True),
        ("https://a:443/x", "https://a/x", True),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, same: bool) -> None:
    assert is_same_origin(one, other) is same

"""TLS is verified for the name of the host, whose address is another one."""

from __future__ import annotations

import ipaddress
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from certificates import make_certificate

from marin_assets.stages.download.fetch.exchange import Client, Limits
from marin_assets.stages.download.fetch.guard import FetchFailure, Guard
from marin_assets.stages.download.links.addresses import Url, canonical_url

LIMITS = Limits(body_bytes=1000, patience_s=5.0, min_bytes_per_s=1000.0)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>owls</p>")

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """The port of a server for good.example, and its certificate."""
    make_certificate(tmp_path / "cert.pem", tmp_path / "key.pem", names=["good.example"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server.server_port, tmp_path / "cert.pem"
    server.shutdown()
    server.server_close()


def fetched(port: int, host: str, trusted: Path | None) -> bytes:
    guard = Guard(
        allowed=(ipaddress.ip_network("127.0.0.0/8"),), fixed={host: "127.0.0.1"}, resolve=lambda name: ["10.0.0.1"]
    )
    tls = ssl.create_default_context(cafile=str(trusted) if trusted else None)
    url = canonical_url(f"https://{host}:{port}/")
    assert isinstance(url, Url)
    return Client(guard, "OwlBot/1.0", tls).fetch(url, LIMITS, guard.addresses(url.host)).body


def test_a_host_with_a_trusted_certificate_is_read(served: tuple[int, Path]) -> None:
    assert fetched(served[0], "good.example", served[1]) == b"<p>owls</p>"


@pytest.mark.parametrize(("host", "is_trusted"), [("good.example", False), ("other.example", True)])
def test_a_host_with_another_certificate_is_refused(served: tuple[int, Path], host: str, is_trusted: bool) -> None:
    with pytest.raises(FetchFailure) as failure:
        fetched(served[0], host, served[1] if is_trusted else None)
    assert failure.value.reason == "tls"

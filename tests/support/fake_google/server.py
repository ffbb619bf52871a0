"""The door: a proxy on loopback that answers for Google's hosts, over TLS with a certificate that its clients trust."""

from __future__ import annotations

import json
import ssl
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from certificates import make_certificate

from fake_google.compute import Compute
from fake_google.documents import api_of, document, find_method
from fake_google.identity import Identity
from fake_google.refusals import RefusalError
from fake_google.things import Things
from fake_google.tpu import Tpu
from fake_google.world import World

HOSTS = ("*.googleapis.com",)


class FakeGoogle:
    """One Google Cloud with one project."""

    def __init__(self, folder: Path, world: World | None = None) -> None:
        self.world = world or World()
        self.compute, self.tpu, self.identity = Compute(self.world), Tpu(self.world), Identity(self.world)
        self.things = Things(self.world)
        parts = (self.compute, self.tpu, self.things, self.identity)
        self.methods = {name: method for part in parts for name, method in part.methods().items()}
        self.token = f"ya29.{uuid.uuid4().hex}"
        """What its clients show. Nothing is answered without it."""
        self.certificate, self.key = folder / "google.pem", folder / "google.key"
        self.account_file = folder / "account.json"
        self.port = 0

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process that shall take this for Google."""
        proxy = f"http://127.0.0.1:{self.port}"
        return {
            "HTTPS_PROXY": proxy,
            "https_proxy": proxy,
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "HTTPLIB2_CA_CERTS": str(self.certificate),
            "REQUESTS_CA_BUNDLE": str(self.certificate),
            "SSL_CERT_FILE": str(self.certificate),
            "GOOGLE_APPLICATION_CREDENTIALS": str(self.account_file),
            "GOOGLE_CLOUD_PROJECT": self.world.project,
        }

    def answer(self, host: str, verb: str, target: str, headers: Any, body: bytes) -> bytes:
        """The body of an answer with status 200. Raises RefusalError."""
        split = urlsplit(target)
        path, query = unquote(split.path), dict(parse_qsl(split.query, keep_blank_values=True))
        if host == "oauth2.googleapis.com":
            return json.dumps({"access_token": self.token, "expires_in": 3600, "token_type": "Bearer"}).encode()
        if path == "/$discovery/rest":
            version = {"v2alpha1": "v2alpha1"}.get(query.get("version", ""), "v2")
            return json.dumps(document(host.partition(".")[0], version)).encode()
        if headers.get("Authorization") != f"Bearer {self.token}":
            raise RefusalError(401, "Request had invalid authentication credentials.")
        method, at = find_method(host, verb, path)
        content = json.loads(body) if body else None
        with self.world.lock:
            self.world.settle()
            self.world.calls.append(method.id)
            self.world.strike(method.id)
            service = f"{api_of(host, path)}.googleapis.com"
            if not self.world.is_enabled(service):
                raise RefusalError(403, f"{service} has not been used in project 1 before or it is disabled.")
            method.check(query, content)
            if method.id not in self.methods:
                raise RefusalError(501, f"{method.id} is not built in this Google")
            found = self.methods[method.id](at, query, content or {})
            return json.dumps(found).encode()


@contextmanager
def fake_google(folder: Path, world: World | None = None) -> Iterator[FakeGoogle]:
    """A Google Cloud that is up meanwhile; its files are in the folder."""
    google = FakeGoogle(folder, world)
    make_certificate(google.certificate, google.key, names=HOSTS)
    google.account_file.write_text(_account(google.world.project))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(google.certificate, google.key)
    handler = type("Handler", (_Handler,), {"google": google, "context": context})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    google.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="fake-google", daemon=True)
    thread.start()
    try:
        yield google
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    google: FakeGoogle
    context: ssl.SSLContext
    protocol_version = "HTTP/1.1"
    host = ""

    def do_CONNECT(self) -> None:
        self.send_response(200, "Connection established")
        self.end_headers()
        self.host = self.path.partition(":")[0]
        self.connection = self.context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb", -1)
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            status, answer = 200, self.google.answer(self.host, self.command, self.path, self.headers, body)
        except RefusalError as refusal:
            status, answer = refusal.status, refusal.body()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_DELETE = do_PATCH = do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _account(project: str) -> str:
    """The key file of a service account, of a key that was made now."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    fields = {
        "type": "service_account",
        "project_id": project,
        "private_key_id": "1",
        "private_key": text,
        "client_email": f"person@{project}.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    return json.dumps(fields)

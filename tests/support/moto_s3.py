"""`python -m moto_s3 FD`: moto's S3 on a bound socket that was inherited, until standard input ends.

Says "ready" on standard output once it listens. One request at a time, so that a condition and its effect are one.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Iterable
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

CARELESS = "careless"
"""Buckets whose names begin with it ignore the conditions of a request, as some stores and proxies do."""
PAID = "paid-by-requester"
"""Buckets whose names begin with it answer 403 to a reader that does not accept to pay."""
PUBLIC = "public"
"""Buckets whose names begin with it answer 403 to a reader with credentials: S3 does not know those of tests."""
READS = ("GET", "HEAD")
DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class OneAtATime:
    def __init__(self, app: Any) -> None:
        self._app, self._turn = app, threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(f"/{CARELESS}"):
            environ.pop("HTTP_IF_MATCH", None)
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if environ["REQUEST_METHOD"] in READS and _is_denied(environ):
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [DENIED]
        with self._turn:
            return list(self._app(environ, start_response))


def _is_denied(environ: dict[str, Any]) -> bool:
    path = environ["PATH_INFO"]
    if path.startswith(f"/{PAID}"):
        return environ.get("HTTP_X_AMZ_REQUEST_PAYER") != "requester" or "HTTP_AUTHORIZATION" not in environ
    return path.startswith(f"/{PUBLIC}") and "HTTP_AUTHORIZATION" in environ


if __name__ == "__main__":
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # or a line for every request
    app = OneAtATime(DomainDispatcherApplication(create_backend_app))
    bound = socket.socket(fileno=int(sys.argv[1]))
    bound.listen(128)
    server = make_server("127.0.0.1", 0, app, threaded=True, fd=bound.fileno())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    sys.stdin.read()

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


class OneAtATime:
    def __init__(self, app: Any) -> None:
        self._app, self._turn = app, threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(f"/{CARELESS}"):
            environ.pop("HTTP_IF_MATCH", None)
            environ.pop("HTTP_IF_NONE_MATCH", None)
        with self._turn:
            return list(self._app(environ, start_response))


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

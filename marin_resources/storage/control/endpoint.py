"""Whether the endpoint of Google Cloud Storage accepts a connection, found out without the retries of its client."""

from __future__ import annotations

import os
import socket
import time
import urllib.request
from urllib.parse import urlsplit

from marin_resources.storage.control.protocol import UnavailableError

ENDPOINT = "https://storage.googleapis.com"
CONNECT_TIMEOUT_S = 2.0
TRIES = 3
PAUSE_S = 0.5


def require_gcs() -> None:
    """Raise UnavailableError if none of 3 connections, 0.5 s apart, succeeds. Behind a proxy nothing is checked."""
    address = os.environ.get("STORAGE_EMULATOR_HOST") or ENDPOINT
    url = urlsplit(address if "://" in address else f"http://{address}")
    host = url.hostname or ""
    if url.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host):
        return
    port = url.port or (443 if url.scheme == "https" else 80)
    for tries_left in reversed(range(TRIES)):
        try:
            socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S).close()
            return
        except OSError as error:
            if not tries_left:
                raise UnavailableError(
                    f"{address} cannot be connected to ({error.strerror or error}). Check the network; without one, "
                    "set MARIN_PREFIX to a folder."
                ) from error
        time.sleep(PAUSE_S)

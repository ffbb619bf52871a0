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
    """Raise UnavailableError if none of 3 connections, 0.5 s apart, succeeds: to the endpoint, or to the proxy through
    which Google's credentials are requested."""
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    address = emulator or ENDPOINT
    url = urlsplit(address if "://" in address else f"http://{address}")
    host = url.hostname or ""
    proxy = urllib.request.getproxies().get(url.scheme)
    if proxy and not urllib.request.proxy_bypass(host):
        if not emulator:  # which takes no credentials
            _require_proxy(proxy, url.scheme)
        return
    why = _why_refused(host, url.port or (443 if url.scheme == "https" else 80))
    if why:
        raise UnavailableError(
            f"{address} cannot be connected to ({why}). Check the network; without one, set MARIN_PREFIX to a folder."
        )


def _require_proxy(proxy: str, scheme: str) -> None:
    """Raise UnavailableError if the proxy cannot be connected to. A password in its address is not shown."""
    url = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    port = url.port or (443 if url.scheme == "https" else 80)
    why = _why_refused(url.hostname or "", port)
    if why:
        raise UnavailableError(
            f"{ENDPOINT} cannot be reached: the proxy {url.hostname}:{port} of {scheme.upper()}_PROXY cannot be "
            f"connected to ({why}). Start the proxy, correct the variable, or unset it."
        )


def _why_refused(host: str, port: int) -> str:
    """The reason why no connection succeeds; "" if one does."""
    why = ""
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE_S)
        try:
            socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S).close()
            return ""
        except OSError as error:
            why = error.strerror or str(error)
    return why

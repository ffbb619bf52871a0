"""The proxies of the environment: one that does not answer stops every request to a store, a cluster or a webhook."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from marin_resources.doctor.finding import Finding, ok, wrong

SUBJECT = "proxy"
VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
TIMEOUT_S = 5.0


def look() -> Iterator[Finding]:
    named = [name for variable in VARIABLES for name in (variable.lower(), variable) if os.environ.get(name)]
    if not named:
        yield ok(SUBJECT, "none")
    answers: dict[str, str] = {}
    for name in named:
        value = os.environ[name]
        if value not in answers:
            answers[value] = _why_useless(value)
        if answers[value]:
            yield wrong(SUBJECT, f"{name} {answers[value]}. Start that proxy, correct the variable, or unset it.")
        else:
            yield ok(SUBJECT, f"{name}: {_place(value)} answers")


def _why_useless(value: str) -> str:
    """Why no request passes, as a phrase; "" if the proxy can be connected to. Its password is not shown."""
    host, port = _address(value)
    if host is None or port is None:
        return "is no address of a proxy (its value may hold a password), expected http://host:port"
    try:
        with socket.create_connection((host, port), timeout=TIMEOUT_S):
            return ""
    except OSError as error:
        why = error.strerror or str(error)
        return f"names the proxy {_place(value)!r}, which cannot be connected to ({why}), so requests fail"


def _address(value: str) -> tuple[str | None, int | None]:
    """Host and port; None for what cannot be read. Without a scheme it is http, as curl has it."""
    try:
        url = urlsplit(value if "://" in value else f"http://{value}")
        return url.hostname, url.port or PORTS.get(url.scheme)
    except ValueError:
        return None, None


def _place(value: str) -> str:
    host, port = _address(value)
    return f"{host}:{port}"

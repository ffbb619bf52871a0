"""The door of the server: hosts, methods, and the headers of every response.

A page of a stranger can let a browser send requests to this machine, under any host name that leads here. So a request
must name a host that was expected, and can only read.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HERE = ("127.0.0.1", "localhost", "::1")
METHODS = ("GET", "HEAD")
HEALTH = "/health"
"""Page for probes: they name an address, which no other page accepts. It reads nothing, as a store that is away is a
sentence on each page, and no reason to start the server again."""
MOST_QUERY_BYTES = 16 * 1024
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Nothing is loaded but the one style sheet and the one script; a frame of a page inherits this."""
CSP = "Content-Security-Policy"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """ASGI middleware: refuses what is not a read for an expected host, and adds HEADERS and the policy."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = {host.lower() for host in (*HERE, *hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault(CSP, POLICY)  # the page of an experiment has its own, which allows its style alone
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        if scope["path"] == HEALTH and scope["method"] in METHODS:
            await PlainTextResponse("ok")(scope, receive, send_with_headers)
            return
        await (self._refusal(scope) or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        hosts = [host_of(value) for value in Headers(scope=scope).getlist("host")]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            named = f"{hosts[0]!r:.200}" if len(hosts) == 1 else f"{len(hosts)} hosts"
            sentence = f"The request names {named}, expected one of {', '.join(sorted(self._hosts))}."
            return PlainTextResponse(f"{sentence} Start the browser with --host-name for another.\n", status_code=403)
        if scope["method"] not in METHODS:
            sentence = f"The method is {scope['method']!r:.40}, expected GET or HEAD: this server only reads.\n"
            return PlainTextResponse(sentence, status_code=405, headers={"Allow": ", ".join(METHODS)})
        if len(scope["query_string"]) > MOST_QUERY_BYTES:
            sentence = f"The address has {len(scope['query_string'])} bytes, expected at most {MOST_QUERY_BYTES}.\n"
            return PlainTextResponse(sentence, status_code=414)
        return None


def host_of(value: str) -> str:
    """The host in a header Host, without its port, in small letters."""
    text = value.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text

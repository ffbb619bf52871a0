"""Pages, plots and logs of outputs below a local prefix, which the UI's server has at /outputs.

A browser opens no local file from a page of a server, and Dagster's serves none but compute logs. A link in metadata is
relative to the server, so it holds for any host and port.

An output may have text of strangers in it: a page is shown in a sandbox, without scripts and with no access to
Dagster's API.
"""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING
from urllib.parse import quote

from marin_resources.configuration.settings import default_prefix
from marin_resources.storage.paths import is_local

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

ROUTE = "/outputs"
TYPES = {
    **dict.fromkeys((".txt", ".log", ".md", ".jsonl", ".csv"), "text/plain; charset=utf-8"),
    ".json": "application/json",
    ".html": "text/html; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
"""Suffix -> the type of a file that is served. Others are read from their place."""
HEADERS = {"Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}


IN_PLACE = "in-place"
"""Behind the address of a plot: as wide as its column. Materializations store addresses, so no width is in it."""
COLUMN_PX = 400
"""The width of a plot in place. Dagster cuts an image at the end of its column: 430 to 530 px at 1440 px."""


def address_of(path: str) -> str | None:
    """The address of a file on the server, relative to it. None for a file that is not served."""
    below = _below(path, default_prefix())
    return f"{ROUTE}/{quote(below)}" if below is not None and os.path.splitext(path)[1] in TYPES else None


def address_in_place(path: str) -> str | None:
    """The address of a plot that fits Dagster's column of values. None for a file that is not served."""
    address = address_of(path)
    return f"{address}?{IN_PLACE}" if address and path.endswith(".png") else address


def route() -> Route:
    """The route for a webserver of Starlette's."""
    from starlette.routing import Route

    return Route(f"{ROUTE}/{{path:path}}", _respond)


def _respond(request: Request) -> Response:
    from starlette.responses import FileResponse, PlainTextResponse, Response

    prefix = default_prefix()
    asked = request.path_params["path"]
    path = os.path.realpath(os.path.join(prefix, asked)) if is_local(prefix) else ""
    kind = TYPES.get(os.path.splitext(path)[1])
    if kind is None or _below(path, os.path.realpath(prefix)) is None or not os.path.isfile(path):
        sentence = f"There is no page, plot or text {asked!r} below this server's prefix, {prefix}."
        return PlainTextResponse(sentence, status_code=404, headers=HEADERS)
    in_place = kind == TYPES[".png"] and IN_PLACE in request.query_params
    if in_place and (scaled := _scaled(path)) is not None:
        return Response(scaled, media_type=TYPES[".svg"], headers=HEADERS)
    return FileResponse(path, media_type=kind, headers=HEADERS)


def _scaled(path: str) -> str | None:
    """A PNG that is wider than the column, as an SVG that has it and is as wide as the column. None for any other."""
    with open(path, "rb") as file:
        content = file.read()
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or len(content) < 24:
        return None
    width, height = (int.from_bytes(content[start : start + 4], "big") for start in (16, 20))  # PNG, 11.2.1 IHDR
    if width <= COLUMN_PX:
        return None
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{COLUMN_PX}" height="{round(height * COLUMN_PX / width)}" '
        f'viewBox="0 0 {width} {height}"><image width="{width}" height="{height}" '
        f'href="data:image/png;base64,{base64.b64encode(content).decode()}"/></svg>'
    )


def _below(path: str, prefix: str) -> str | None:
    """The path relative to a local prefix; None if it is not below it."""
    if not is_local(prefix) or not path.startswith(f"{prefix.rstrip('/')}/"):
        return None
    return path[len(prefix.rstrip("/")) + 1 :]

"""The server of the data browser: its routes, and the road of one request.

In:  the prefixes that are shown.   Out: an ASGI application.   Written: nothing.

guard -> page function in a thread, under limits -> template. An error of a page is a page with one sentence. The
connection is watched meanwhile: reading ends when the browser has closed it.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from urllib.parse import quote

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from marin_assets.browse.errors import BrowseError
from marin_assets.browse.limits import Limits, RequestWatch, Threads
from marin_assets.browse.pages.batch import batch
from marin_assets.browse.pages.beside_choice import beside_choice
from marin_assets.browse.pages.checkpoints import checkpoints
from marin_assets.browse.pages.difference import difference
from marin_assets.browse.pages.experiment import experiment
from marin_assets.browse.pages.experiments import experiments
from marin_assets.browse.pages.file import file
from marin_assets.browse.pages.histograms.page import histogram
from marin_assets.browse.pages.home import home
from marin_assets.browse.pages.leaderboard import leaderboard
from marin_assets.browse.pages.models import models
from marin_assets.browse.pages.output import output
from marin_assets.browse.pages.rewards.page import rewards
from marin_assets.browse.pages.rewards.rollout import rollout
from marin_assets.browse.pages.row import cell, page, row
from marin_assets.browse.pages.rows import rows
from marin_assets.browse.pages.sample import sample
from marin_assets.browse.pages.search import search
from marin_assets.browse.pages.selection import selection
from marin_assets.browse.pages.tokens import tokens
from marin_assets.browse.pages.way import way
from marin_assets.browse.places import Places
from marin_assets.browse.query import Query
from marin_assets.browse.render import FOLDER, render, render_pieces
from marin_assets.browse.site import Asked, Download, Shown, WholePage
from marin_assets.browse.web.guard import CSP, Guard
from marin_assets.browse.web.response_stream import StreamedPage, watch_connection
from marin_assets.documents.document import DocumentError
from marin_resources.types.errors import MarinError

PageFunction = Callable[[Asked], Shown | WholePage | Download]

PAGES: Mapping[str, PageFunction] = {
    "/": home,
    "/output": output,
    "/rows": rows,
    "/beside": beside_choice,
    "/row": row,
    "/cell": cell,
    "/page": page,
    "/file": file,
    "/way": way,
    "/tokens": tokens,
    "/batch": batch,
    "/sample": sample,
    "/search": search,
    "/selection": selection,
    "/histogram": histogram,
    "/difference": difference,
    "/experiments": experiments,
    "/experiment": experiment,
    "/models": models,
    "/leaderboard": leaderboard,
    "/checkpoints": checkpoints,
    "/rewards": rewards,
    "/rollout": rollout,
}
UNREADABLE, FORBIDDEN, NOT_THERE, BROKEN = 422, 403, 404, 500
NO_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""Errors of the system for a path at which no file can be."""

log = logging.getLogger(__name__)


def create_app(prefixes: Sequence[str], *, hosts: Sequence[str] = (), limits: Limits | None = None) -> Starlette:
    """The application that shows these prefixes. `hosts`: its names, beside those of this machine."""
    site = Site(Places(prefixes), limits or Limits())
    return Starlette(
        routes=[
            *(Route(path, partial(site.respond, show=show), methods=["GET"]) for path, show in PAGES.items()),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
        ],
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers={HTTPException: _no_such_page},
    )


class Site:
    """The server's state: the prefixes, and its threads."""

    def __init__(self, places: Places, limits: Limits) -> None:
        self._places, self._limits = places, limits
        self._threads = Threads(limits)

    async def respond(self, request: Request, show: PageFunction) -> Response:
        watch = RequestWatch(self._places, self._limits)
        asked = Asked(places=self._places, limits=self._limits, query=Query(request.query_params), watch=watch)
        async with anyio.create_task_group() as group:
            group.start_soon(watch_connection, request.receive, watch)
            try:
                made = await self._threads.run(partial(_page, show, asked), watch)
            except MarinError as error:  # no thread was free
                made = error_page(str(error), status_of(error))
            finally:
                group.cancel_scope.cancel()
        return made if isinstance(made, Response) else StreamedPage(partial(_pieces, made), self._threads, watch)


def _page(show: PageFunction, asked: Asked) -> Response | Shown:
    """The page, or the page of its error; the facts of one that is sent while it is written. It runs in a thread."""
    try:
        shown = show(asked)
        if isinstance(shown, WholePage):
            return HTMLResponse(shown.html.encode("utf-8", "backslashreplace"), headers={CSP: shown.policy})
        if isinstance(shown, Download):
            named = f"attachment; filename*=UTF-8''{quote(shown.name)}"
            return Response(shown.content, media_type="application/x-ndjson", headers={"Content-Disposition": named})
        return shown if shown.waits is not None else HTMLResponse(render(shown.template, shown.facts))
    except (MarinError, OSError, MemoryError) as error:
        return error_page(sentence_of(error), status_of(error))
    except Exception:  # the server serves other requests; the traceback is for its terminal
        log.exception("The page %s cannot be shown", show.__name__)
        return error_page("The page cannot be shown: an error that the server's log describes. Report it.", BROKEN)


def _pieces(shown: Shown, flush: Callable[[], None]) -> Iterator[str]:
    """The pieces of a page that is sent while it is written; an error ends it with its sentence."""
    if shown.waits is not None:
        shown.waits.call_before_waiting(flush)
    try:
        yield from render_pieces(shown.template, shown.facts)
    except (MarinError, OSError, MemoryError) as error:
        yield render("stopped", {"sentence": sentence_of(error)}).decode()
    except Exception:  # as in `_page`: the response has begun, so its status stays
        log.exception("The page %s cannot be shown whole", shown.template)
        yield render("stopped", {"sentence": "An error ended the page: the server's log describes it."}).decode()


def sentence_of(error: BaseException) -> str:
    """The sentence of an error for its page."""
    if isinstance(error, MarinError):
        return str(error)
    if isinstance(error, MemoryError):
        return "The request needs more memory than this machine has. Open a smaller file."
    if isinstance(error, OSError) and error.errno in NO_PLACE:
        return f"No file exists at {error.filename!r:.300}."
    if isinstance(error, FileNotFoundError):  # of this software: a sentence
        return str(error)
    return f"The store cannot be read ({type(error).__name__}: {error}). Try again, or look at the rights of the file."


def status_of(error: BaseException) -> int:
    """The status of the response to an error."""
    if isinstance(error, BrowseError):
        return error.status
    if isinstance(error, FileNotFoundError) or (isinstance(error, OSError) and error.errno in NO_PLACE):
        return NOT_THERE
    if isinstance(error, PermissionError):
        return FORBIDDEN
    return UNREADABLE if isinstance(error, DocumentError | OSError | MarinError) else BROKEN


def error_page(sentence: str, status: int) -> Response:
    return HTMLResponse(render("error", {"sentence": sentence, "status": status}), status_code=status)


async def _no_such_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else BROKEN
    return error_page(f"There is no page {request.url.path!r:.200} here. Begin at the first page.", status)

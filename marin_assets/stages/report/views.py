"""The view of the questions behind a number: its address in a data browser, or the command that opens it.

In:  the outputs of evaluations, a task and a metric.   Out: an address or a command.   Written: nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from html import escape
from urllib.parse import urlencode

from marin_assets.stages.report.records import StepRecord

PAGE = "models"
"""The page of the browser for answers side by side; its test compares it with the server's."""
FILE = "file"
"""The page of the browser for a file of an output."""
MOST = 8
"""Evaluations that it shows at once."""


def view_of(browser: str, evaluations: Sequence[StepRecord], task: str, metric: str) -> str:
    """The address of the answers of these evaluations below that of a browser; the command without a browser.

    The address has whole paths, which hold for whatever prefix a browser shows first. The command has paths below the
    prefix, so that the page of a prefix that was moved is right.
    """
    shown = evaluations[:MOST]
    if browser:
        values = {"model": [record.own_path or record.path for record in shown], "task": task, "metric": metric}
        return f"{browser.rstrip('/')}/{PAGE}?{urlencode(values, doseq=True)}"
    paths = [
        f"{record.name}-{record.version}" if record.version else record.own_path or record.path for record in shown
    ]
    return shlex.join(["marin", "browse", "--compare", *paths, "--task", task, "--metric", metric])


def page_address(browser: str, path: str) -> str:
    """The address of an output's page of HTML below that of a browser; empty without a browser."""
    return f"{browser.rstrip('/')}/{FILE}?{urlencode({'path': path, 'page': 1})}" if browser else ""


def linked(number: str, view: str) -> str:
    """A number as a link, if the view is an address."""
    return f'<a href="{escape(view)}">{number}</a>' if _is_address(view) else number


def title_with(difference: str, view: str) -> str:
    """The attribute `title` of a cell: its difference, and the command of its view. Empty without both."""
    parts = [part for part in (difference, "" if _is_address(view) else view) if part]
    return f' title="{escape("; ".join(parts))}"' if parts else ""


def about_views(views: Sequence[str]) -> str:
    """The sentence of a page about the views of its numbers; empty without any."""
    if not any(views):
        return ""
    if _is_address(next(view for view in views if view)):
        return " A number leads to the questions behind it, with the answers side by side."
    return " A cell's title also has the command that shows the questions behind it, with the answers side by side."


def _is_address(view: str) -> bool:
    return view.startswith(("http://", "https://"))

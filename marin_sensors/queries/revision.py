"""The revision of a dataset, as its server has it now.

    hf://datasets/allenai/c4            the commit of a Hugging Face dataset's main branch; @name: of another branch
    https://example.org/dump.jsonl.gz   the ETag of a URL; without one, the time of its last change and its size

The Hub is queried at HF_ENDPOINT, with HF_TOKEN if that is set. Sources: https://huggingface.co/docs/hub/api, RFC
9110, 8.8.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from urllib.parse import quote, urlsplit

from marin_resources.host.http_request import FAILURES, answer_to
from marin_resources.types.errors import MarinError

HUB = "https://huggingface.co"
TIMEOUT_S = 20.0
"""Time limit of a whole answer; Dagster gives a tick 60 s."""
MOST_BYTES = 20_000_000
"""Size limit of an answer of the Hub, which lists the files of a dataset."""
_DATASET = re.compile(r"hf://datasets/(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<branch>[^\s]+))?")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class RevisionError(MarinError):
    """A revision that cannot be read now: one sentence."""


@dataclass(frozen=True)
class Revision:
    """The revision that a server has now."""

    key: str
    """A name for it that can be the key of a partition: the commit, or the ETag."""
    phrase: str
    """A name for people: "commit 5e1b3c…"."""


def require_source(source: str) -> None:
    """Raise ValueError for a text that names no dataset."""
    if not isinstance(source, str) or not (_DATASET.fullmatch(source) or _is_url(source)):
        raise ValueError(
            f"The dataset is {source!r}, expected 'hf://datasets/<name>', with @branch if it is not main, or "
            "'https://…'."
        )


def revision_of(source: str) -> Revision:
    """Query the server. Raises RevisionError."""
    dataset = _DATASET.fullmatch(source)
    return _commit(source, dataset["name"], dataset["branch"] or "main") if dataset else _etag(source)


def _is_url(source: str) -> bool:
    parts = urlsplit(source)
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _commit(source: str, name: str, branch: str) -> Revision:
    endpoint = os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
    token = os.environ.get("HF_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"{endpoint}/api/datasets/{name}/revision/{quote(branch, safe='')}"
    _, body = _request("GET", url, headers, source)
    try:
        commit = json.loads(body)["sha"]
    except (ValueError, KeyError, TypeError, RecursionError):
        commit = None
    if not isinstance(commit, str) or not _PLAIN.fullmatch(commit):
        raise RevisionError(f"The answer for {source!r} has no commit: {body[:80]!r}. The next tick asks again.")
    return Revision(commit, f"commit {commit[:12]}")


def _etag(source: str) -> Revision:
    headers, _ = _request("HEAD", source, {}, source)
    tag = headers.get("ETag", "").removeprefix("W/").strip('"')
    if tag:
        return Revision(_name_of(tag), f"ETag {tag[:40]}")
    changed = headers.get("Last-Modified", "")
    if not changed:
        raise RevisionError(
            f"The server of {source!r} sends neither an ETag nor the time of the last change, so a new revision cannot "
            "be recognised. Watch a listing of files instead: new_raw_data."
        )
    return Revision(_name_of(f"{changed} {headers.get('Content-Length', '')}"), f"last change {changed}")


def _request(method: str, url: str, headers: dict[str, str], source: str) -> tuple[Message, bytes]:
    """The headers and the body of the answer."""
    request = urllib.request.Request(url, headers={"User-Agent": "marin", **headers}, method=method)
    try:
        answer = answer_to(request, TIMEOUT_S, MOST_BYTES if method == "GET" else 0)
        return answer.headers, answer.body
    except urllib.error.HTTPError as error:
        denied = " Set HF_TOKEN if the dataset is private or gated." if error.code in (401, 403, 404) else ""
        raise RevisionError(
            f"The server answered {error.code} for {source!r}.{denied if _DATASET.fullmatch(source) else ''} The next "
            "tick asks again."
        ) from None
    except FAILURES as error:
        reason = str(error.reason) if isinstance(error, urllib.error.URLError) else str(error) or type(error).__name__
        raise RevisionError(f"The server of {source!r} did not answer ({reason}). The next tick asks again.") from None


def _name_of(text: str) -> str:
    """The text, if it can be a partition's key as it is; else 16 hex digits of it."""
    if _PLAIN.fullmatch(text) and not text.startswith("."):
        return text
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]

"""The hub over HTTP: revisions, listings page by page, and ranges of files.

The token is HF_TOKEN, or the one that `hf auth login` has stored. It is sent to the hub's own origin alone, which is
that of HF_ENDPOINT: a redirect to a storage or another host takes it nowhere. Redirects are followed here, one by one.

A large file is stored elsewhere: the hub answers with a signed address, which is used for all ranges of the file until
the storage refuses it. Requests to the hub count for the budget, those to the storage do not.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from marin_assets.stages.download.hub.budget import Budget
from marin_assets.stages.download.hub.repository import COMMIT, HubError, HubFile, MissingEntryError, Repository
from marin_assets.stages.download.web import answers
from marin_assets.stages.download.web.answers import body_of, checked_start, drain, no_cookies, stated_wait_s
from marin_assets.stages.download.web.faults import LONGEST_STATED_WAIT_S, Fault, persist
from marin_assets.stages.download.web.tally import Tally
from marin_resources.configuration.user_agent import user_agent
from marin_resources.host.http_request import is_same_origin, origin_of

if TYPE_CHECKING:
    import requests

T = TypeVar("T")

MOST_REDIRECTS = 6
MOST_JSON_BYTES = 100 * 2**20
REDIRECTS = (301, 302, 303, 307, 308)
_REMAINING = re.compile(r"\br=(\d+)\s*;\s*t=(\d+)")
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def stored_token() -> str | None:
    """The token: HF_TOKEN, else the file of `hf auth login`; None if neither exists.

    Raises HubError for one that a header cannot have, without its text.
    """
    token = os.environ.get("HF_TOKEN", "").strip()
    file = _token_file()
    if not token and file.is_file():
        token = file.read_text(errors="replace").strip()
    if not re.fullmatch(r"[!-~]*", token):
        raise HubError(f"The token of HF_TOKEN or {str(file)!r} has a letter that no token has. Copy it again.")
    return token or None


def _token_file() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
    return Path(os.environ.get("HF_TOKEN_PATH") or f"{home}/token").expanduser()


class OnlineHub:
    """A source of one repository. Safe for many threads."""

    def __init__(
        self, repository: Repository, *, tally: Tally, budget: Budget, stop: threading.Event, connections: int
    ) -> None:
        import requests  # late, for its weight
        from requests.adapters import HTTPAdapter

        self.repository, self._tally, self._budget, self._stop = repository, tally, budget, stop
        self._token = stored_token()
        self._locations: dict[str, str] = {}
        """Signed addresses by path."""
        self._turns: dict[str, threading.Lock] = {}
        """By path: one range of a file resolves it, the others use its address."""
        self._session = requests.Session()
        self._session.auth = lambda request: request  # otherwise ~/.netrc replaces the header
        # of a redirect that is not followed, requests reads the whole body and parses the address
        self._session.get_redirect_target = lambda answer: None  # type: ignore[method-assign,assignment]
        self._session.cookies.set_policy(no_cookies())
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=connections))

    def close(self) -> None:
        self._session.close()
        self._budget.close()

    def commit_of(self, revision: str) -> tuple[str, str]:
        """The commit of a revision, and the repository's name now. Raises HubError."""

        def parse(answer: Any) -> tuple[str, str]:
            commit = answer.get("sha") if isinstance(answer, dict) else None
            if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
                raise Fault("wrong_answer", f"the hub has the commit {commit!r:.60}, expected 40 hexadecimal digits")
            if COMMIT.fullmatch(revision) and commit != revision:
                raise Fault("changed", f"the hub has the commit {commit!r} for {revision!r}")
            name = answer.get("id")
            return commit, name if isinstance(name, str) else self.repository.id

        url = self._url(self.repository.revision_path(revision))
        return self._json(url, f"revision {revision!r}", parse)[0]

    def entries(self, commit: str, folder: str, *, recursive: bool) -> Iterator[Any]:
        """The rows of the listing below a folder, of all pages. Raises HubError."""

        def parse(answer: Any) -> list[Any]:
            if not isinstance(answer, list):
                raise Fault("wrong_answer", "a page of the listing is no list")
            return answer

        url: str | None = self._url(self.repository.tree_path(commit)) + (f"/{quote(folder)}" if folder else "")
        url = f"{url}?recursive={recursive}&expand=False"
        pages = set()
        while url:
            if url in pages or not is_same_origin(self.repository.endpoint, url):
                raise HubError(
                    f"The listing of {self.repository} continues at a page of {origin_of(url)!r} that is "
                    f"{'repeated' if url in pages else 'not the hub'}, expected a next page of the hub."
                )
            pages.add(url)
            rows, following = self._json(url, f"folder {folder!r}", parse)
            yield from rows
            url = urljoin(url, following) if following else None

    def blocks(self, commit: str, file: HubFile, start: int, end: int, *, whole: bool) -> Iterator[bytes]:
        """The bytes of a file from `start` to `end`, in blocks. Raises Fault and HubError.

        `whole`: the range ends with the file, and an answer with the whole file is skipped up to `start`.
        """
        try:
            with self._opened(commit, file, f"bytes={start}-{end - 1}") as answer:
                skip = checked_start(answer, file.size_bytes, start, whole=whole)
                rest = end - start
                for block in body_of(answer):
                    taken = block[skip : skip + rest]
                    skip, rest = max(0, skip - len(block)), rest - len(taken)
                    if taken:
                        yield taken
                    if not rest:
                        return
        except Fault:
            self.forget(file)
            raise

    def forget(self, file: HubFile) -> None:
        """Forget the signed address of a file."""
        self._locations.pop(file.path, None)

    @contextmanager
    def _opened(self, commit: str, file: HubFile, span: str) -> Iterator[requests.Response]:
        first = self._url(quote(self.repository.file_path(commit, file.path)))
        url = self._locations.get(file.path, first)
        for _ in range(MOST_REDIRECTS):
            answer = self._resolved(file, first, span) if url == first else self._send(url, {"Range": span})
            if answer is None:
                url = self._locations.get(file.path, first)
                continue
            is_hub = is_same_origin(self.repository.endpoint, url)
            try:
                if is_hub and answer.status_code < 400:
                    _check_pinned(answer, commit, file)
                if answer.status_code in REDIRECTS:
                    drain(answer)
                    url = self._next(answer, url)
                    self._keep_location(file, url)
                elif answer.status_code in (200, 206):
                    yield answer
                    return
                elif answer.status_code == 416:
                    raise Fault("wrong_range", f"416 for {span!r}, {answer.headers.get('Content-Range', '')!r}")
                elif not is_hub:
                    raise Fault("expired", f"the storage answered {answer.status_code}", wait_s=0.0)
                else:
                    raise self._refused(answer, f"file {file.path!r}")
            finally:
                answer.close()
        raise Fault("wrong_answer", f"more than {MOST_REDIRECTS} redirects")

    def _resolved(self, file: HubFile, first: str, span: str) -> requests.Response | None:
        """The hub's answer for a file; None if another range of it has found its signed address just now."""
        with self._turns.setdefault(file.path, threading.Lock()):
            if file.path in self._locations:
                return None
            answer = self._send(first, {"Range": span})
            if answer.status_code in REDIRECTS:
                try:
                    self._keep_location(file, self._next(answer, first))
                except Fault:
                    answer.close()
                    raise
            return answer

    def _keep_location(self, file: HubFile, url: str) -> None:
        if not is_same_origin(self.repository.endpoint, url):
            self._locations[file.path] = url

    def _json(self, url: str, subject: str, parse: Callable[[Any], T]) -> tuple[T, str]:
        """The parsed answer, and the address of the next page, "" if it is the last. Raises HubError."""

        def once() -> tuple[T, str]:
            body, following = self._text(url, subject)
            try:
                answer = json.loads(body)
            except (ValueError, RecursionError):
                raise Fault("wrong_answer", f"{body[:60]!r} is not JSON") from None
            return parse(answer), following

        name = f"The {subject} of {self.repository}"
        return persist(once, subject=name, tally=self._tally, stop=self._stop)

    def _text(self, url: str, subject: str) -> tuple[bytes, str]:
        for _ in range(MOST_REDIRECTS):
            with self._send(url, {}) as answer:
                if answer.status_code in REDIRECTS:
                    drain(answer)
                    url = self._next(answer, url)
                    continue
                if answer.status_code != 200:
                    raise self._refused(answer, subject)
                body = bytearray()
                for block in body_of(answer):
                    body += block
                    if len(body) > MOST_JSON_BYTES:
                        raise HubError(f"The hub's {subject} of {self.repository} has over {MOST_JSON_BYTES} bytes.")
                return bytes(body), answer.links.get("next", {}).get("url", "")
        raise Fault("wrong_answer", f"more than {MOST_REDIRECTS} redirects")

    def _send(self, url: str, headers: dict[str, str]) -> requests.Response:
        """One answer, no redirect followed. Raises Fault if none came, or one that passes."""
        import requests
        import urllib3

        sent = {"User-Agent": user_agent(), "Accept-Encoding": "identity", **headers}
        is_hub = is_same_origin(self.repository.endpoint, url)
        if is_hub:
            self._budget.take()
            if self._token:
                sent["Authorization"] = f"Bearer {self._token}"
        self._tally.request()
        try:
            answer = self._session.get(
                url, headers=sent, stream=True, allow_redirects=False, timeout=(answers.CONNECT_S, answers.STALL_S)
            )
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            # its text may have the signed address
            raise Fault("connection", f"{origin_of(url)!r} gave no answer ({type(error).__name__})") from None
        remaining, wait_s = _limit_of(answer)
        if is_hub and (remaining == 0 or answer.status_code == 429) and wait_s:
            self._budget.pause(wait_s)
        if answer.status_code in (408, 425, 429) or answer.status_code >= 500:
            answer.close()
            reason = "limited" if answer.status_code == 429 else "server_error"
            raise Fault(reason, f"{origin_of(url)!r} answered {answer.status_code}", wait_s)
        return answer

    def _next(self, answer: requests.Response, url: str) -> str:
        try:
            following = urljoin(url, answer.headers.get("Location", ""))
            parts = urlsplit(following)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port or a host that is none
            is_address = False
        if not is_address or following == url:
            raise Fault("wrong_answer", f"a redirect from {origin_of(url)!r} to no address")
        return following

    def _refused(self, answer: requests.Response, subject: str) -> HubError:
        code = answer.headers.get("X-Error-Code", "")
        return refusal(self.repository, subject, answer.status_code, code, has_token=self._token is not None)

    def _url(self, path: str) -> str:
        return f"{self.repository.endpoint}/{path}"


def _check_pinned(answer: requests.Response, commit: str, file: HubFile) -> None:
    """Raise Fault if the hub answers for another commit or another content than the listing's."""
    sent = answer.headers.get("X-Repo-Commit", commit)
    if sent != commit:
        raise Fault("changed", f"the hub sent the commit {sent!r:.60}, expected {commit!r}")
    tag = answer.headers.get("X-Linked-Etag") or answer.headers.get("ETag", "")
    tag = tag.removeprefix("W/").strip('"')
    if _DIGEST.fullmatch(tag) and tag not in (file.sha256, file.oid):
        raise Fault("changed", f"the hub sent the checksum {tag!r}, expected {file.sha256 or file.oid!r}")
    linked = answer.headers.get("X-Linked-Size", "")
    if linked.isdecimal() and int(linked) != file.size_bytes:
        raise Fault("wrong_size", f"the hub sent the size {linked}, expected {file.size_bytes} by the listing")


def _limit_of(answer: requests.Response) -> tuple[int | None, float | None]:
    """The requests left in the hub's window, and the seconds to wait if it is none; None for what is not stated."""
    stated = [(int(r), int(t)) for r, t in _REMAINING.findall(answer.headers.get("RateLimit", ""))]
    if stated:
        remaining, seconds = min(stated, key=lambda pair: (pair[0], -pair[1]))
        if remaining == 0 or answer.status_code == 429:
            return remaining, min(seconds + 1.0, LONGEST_STATED_WAIT_S)
        return remaining, None
    return None, stated_wait_s(answer)


def refusal(repository: Repository, subject: str, status: int, code: str, *, has_token: bool) -> HubError:
    """The error for an answer of the hub itself. `code` is its X-Error-Code, "" if it sent none; `subject` a phrase for
    the thing that was requested."""
    kind, name = repository.kind, repository.id
    token = "the token that was sent does not open it" if has_token else "no token was sent"
    if code == "GatedRepo":
        return HubError(
            f"The {kind} {name!r} is gated, and {token} ({status}). Accept its conditions at {repository.page}, and "
            "set HF_TOKEN to a token of that user."
        )
    if code == "RepoNotFound" or (not code and status == 401):
        return HubError(
            f"The hub at {repository.endpoint!r} has no {kind} {name!r}, or it is private, and {token} ({status}). "
            "Correct the name, or set HF_TOKEN to a token of a user who may read it."
        )
    if code == "RevisionNotFound":
        return HubError(
            f"The {kind} {name!r} has no revision {subject.rpartition(' ')[2]} ({status}), expected a branch, a tag "
            f"or a commit. {repository.page}/tree/main lists its branches."
        )
    if code == "EntryNotFound":
        return MissingEntryError(f"The {kind} {name!r} has no {subject} ({status}). Correct the name.")
    if status == 403:
        return HubError(
            f"The hub refuses {subject} of the {kind} {name!r}, and {token} (403). Look at {repository.page}, and set "
            "HF_TOKEN to a token of a user who may read it."
        )
    if status == 404:
        return HubError(
            f"The hub at {repository.endpoint!r} has no {subject} of the {kind} {name!r} (404). Correct it."
        )
    return HubError(
        f"The hub {repository.endpoint!r} answered {status} for {subject} of the {kind} {name!r}, expected 200. "
        f"Look at {repository.page}."
    )

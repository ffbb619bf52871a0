"""A session of `requests` that reaches the Google Cloud of this process without a socket."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter

from fake_google.refusals import RefusalError
from fake_google.server import FakeGoogle


class InProcess(BaseAdapter):
    """`before` and `after` a request's effect, a test may raise what a client would see then."""

    def __init__(
        self,
        google: FakeGoogle,
        before: Callable[[str], None] | None = None,
        after: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        self.google = google
        self.before = before or (lambda request: None)
        self.after = after or (lambda request: None)

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        url = urlsplit(request.url or "")
        target = f"{url.path}?{url.query}" if url.query else url.path
        body = request.body if isinstance(request.body, bytes) else (request.body or "").encode()
        called = f"{request.method} {target}"
        self.before(called)
        response = requests.Response()
        try:
            answer = self.google.answer(url.hostname or "", request.method or "", target, request.headers, body)
            response.status_code = 200
        except RefusalError as refusal:
            answer, response.status_code = refusal.body(), refusal.status
        self.after(called)
        response.raw = io.BytesIO(answer)
        response.request = request
        response.url = request.url or ""
        return response

    def close(self) -> None:
        pass


def session(adapter: InProcess) -> requests.Session:
    """A session with the credentials of that Google Cloud."""
    found = requests.Session()
    found.headers["Authorization"] = f"Bearer {adapter.google.token}"
    found.mount("https://", adapter)
    found.trust_env = False
    return found

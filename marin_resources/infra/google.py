"""Requests to Google Cloud's REST interfaces, with this process's own credentials.

A request that fails for a reason that may pass is sent again. A caller must be able to send each of them twice: the
answer to one that has had its effect may be lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from marin_resources.configuration.settings import SettingError

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
TRIES = 4
PAUSE_S = 1.0
"""Before the second try; doubled before each further one."""
TIMEOUT_S = 60.0
PASSES = (408, 429, 500, 502, 503, 504)
"""Statuses of a service that is busy or ill."""


class GoogleError(SettingError):
    """A request that Google refused, or did not answer: one sentence."""

    def __init__(self, sentence: str, status: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        """None if there was no answer."""


class Google:
    """One session. Requests are in the caller's thread."""

    def __init__(self, session: Any = None) -> None:
        """`session`: one of `requests` that adds the credentials; default: one with this process's own."""
        self._session = session

    def call(
        self,
        verb: str,
        url: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        may_send: Callable[[], bool] = lambda: True,
    ) -> dict[str, Any]:
        """The JSON of the answer. `may_send` is called before each try. Raises GoogleError."""
        failure = GoogleError(f"{verb} {url}: not sent, as it took too long until it could be.")
        for rest in reversed(range(TRIES)):
            if not may_send():
                raise failure
            try:
                response = self._authorized().request(verb, url, params=query, json=body, timeout=TIMEOUT_S)
            except _transport_errors() as error:
                failure = GoogleError(f"{verb} {url}: no answer ({_short(error)}).")
            else:
                if response.status_code == 200:
                    answer: dict[str, Any] = response.json()
                    return answer
                failure = GoogleError(f"{verb} {url}: {_message(response)}", response.status_code)
                if response.status_code not in PASSES:
                    raise failure
            if rest:
                time.sleep(PAUSE_S * 2 ** (TRIES - 1 - rest))
        raise failure

    def pages(self, url: str, key: str) -> Iterator[dict[str, Any]]:
        """The entries of a list, of all its pages. Raises GoogleError."""
        token = ""
        while True:
            page = self.call("GET", url, query={"pageToken": token} if token else None)
            yield from page.get(key, [])
            token = page.get("nextPageToken", "")
            if not token:
                return

    def _authorized(self) -> Any:
        if self._session is None:
            import google.auth
            import google.auth.exceptions
            from google.auth.transport.requests import AuthorizedSession

            try:
                credentials, _ = google.auth.default(scopes=[SCOPE])
            except google.auth.exceptions.GoogleAuthError as error:
                raise GoogleError(
                    f"This process has no credentials of Google's ({_short(error)}). Log in: gcloud auth "
                    "application-default login; or set GOOGLE_APPLICATION_CREDENTIALS."
                ) from None
            self._session = AuthorizedSession(credentials)
        return self._session


def _transport_errors() -> tuple[type[Exception], ...]:
    import google.auth.exceptions
    import requests

    return (requests.RequestException, google.auth.exceptions.TransportError)


def _message(response: Any) -> str:
    """Google's own sentence, else the status."""
    try:
        return f"{response.json()['error']['message'].rstrip('.')} (HTTP {response.status_code})."
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"HTTP {response.status_code}."


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]

"""Read a secret from Google's Secret Manager, over its REST interface.

MARIN_SECRET_MANAGER_URL sets another service, which is called without credentials.
"""

from __future__ import annotations

import base64
import binascii
import os
import time
from typing import TYPE_CHECKING, Any

from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import requests

URL_VARIABLE = "MARIN_SECRET_MANAGER_URL"
GOOGLE = "https://secretmanager.googleapis.com"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
TRIES = 3
PAUSE_S = 0.5
"""Pause before another try, if the service is busy or unreachable."""


class SecretError(MarinError):
    """A secret that cannot be read: one sentence with its name, never with a value."""


def access_secret(resource: str, *, timeout_s: float = 30.0) -> str:
    """The value of the secret "projects/p/secrets/s", or of one version, "projects/p/secrets/s/versions/v".

    Raises SecretError.
    """
    version = resource if "/versions/" in resource else f"{resource}/versions/latest"
    service = os.environ.get(URL_VARIABLE, "").rstrip("/")
    session = _session(resource, anonymous=bool(service))
    response = _get(session, f"{service or GOOGLE}/v1/{version}:access", resource, timeout_s)
    if response.status_code != 200:
        raise SecretError(_refusal(resource, response.status_code, _message(response)))
    return _value(resource, response)


def _session(resource: str, *, anonymous: bool) -> Any:
    """A `requests` session, with this process's Google credentials unless it is anonymous."""
    if anonymous:
        import requests

        return requests.Session()
    import google.auth
    import google.auth.exceptions
    from google.auth.transport.requests import AuthorizedSession

    try:
        credentials, _ = google.auth.default(scopes=[SCOPE])
    except google.auth.exceptions.GoogleAuthError as error:
        raise SecretError(_no_credentials(resource, error)) from None
    return AuthorizedSession(credentials)


def _get(session: Any, url: str, resource: str, timeout_s: float) -> requests.Response:
    """The response. A busy or unreachable service is retried, and raises SecretError after the last try."""
    import google.auth.exceptions
    import requests

    end_s = time.monotonic() + timeout_s
    for tries_left in reversed(range(TRIES)):
        error, response = "", None
        try:
            response = session.get(url, timeout=max(0.1, end_s - time.monotonic()))
        except (requests.exceptions.RequestException, google.auth.exceptions.TransportError) as raised:
            error = type(raised).__name__
        except google.auth.exceptions.GoogleAuthError as raised:
            raise SecretError(_no_credentials(resource, raised)) from None
        if response is not None and response.status_code != 429 and response.status_code < 500:
            return response
        if not tries_left or time.monotonic() + PAUSE_S > end_s:
            break
        time.sleep(PAUSE_S)
    problem = error or f"HTTP {response.status_code if response is not None else '?'}"
    raise SecretError(f"The secret {resource!r} cannot be read now: {url!r} responds with {problem}. Run again.")


def _refusal(resource: str, status: int, message: str) -> str:
    if status == 404:
        return f"The secret {resource!r} does not exist, or has no version (HTTP 404). Create it, or fix its name."
    if status in (401, 403):
        return (
            f"The secret {resource!r} may not be read by this process's Google account (HTTP {status}: "
            f"{message}). Give the account the role roles/secretmanager.secretAccessor for it."
        )
    return f"The secret {resource!r} cannot be read (HTTP {status}: {message}). Check its name and its versions."


def _message(response: requests.Response) -> str:
    """Google's message of an error, in one line."""
    try:
        return " ".join(str(response.json()["error"]["message"]).split())
    except (ValueError, KeyError, TypeError):
        return response.reason or "no reason given"


def _value(resource: str, response: requests.Response) -> str:
    try:
        return base64.b64decode(response.json()["payload"]["data"], validate=True).decode()
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise SecretError(f"The secret {resource!r} is not text. Store the value as UTF-8.") from None


def _no_credentials(resource: str, error: Exception) -> str:
    return (
        f"The secret {resource!r} cannot be read, as this process has no usable Google credentials "
        f"({type(error).__name__}). Run on a machine with a service account, or set GOOGLE_APPLICATION_CREDENTIALS."
    )

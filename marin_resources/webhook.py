"""A webhook, to which messages are sent as JSON. Its address is a secret: no error names more of it than the host."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

WEBHOOK = "MARIN_WEBHOOK_URL"
"""The variable with the address of the deployment's webhook."""
TIMEOUT_S = 10.0


NO_ANSWER = (OSError, http.client.HTTPException, ValueError)


class WebhookError(Exception):
    """A webhook that did not take a message: one sentence."""


def post(url: str, body: dict[str, Any]) -> None:
    """Send the JSON. Raises WebhookError."""
    host = host_of(url)
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", "User-Agent": "marin"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):
            return
    except urllib.error.HTTPError as error:
        raise WebhookError(f"The webhook at {host!r} answered {error.code}. The message is sent again later.") from None
    except NO_ANSWER as error:
        raise WebhookError(
            f"The webhook at {host!r} did not answer ({_reason(error)}). The message is sent again later."
        ) from None


def require_answer(url: str) -> str:
    """The host of a webhook that answers a request without a message; any status is an answer. Raises WebhookError."""
    host = host_of(url)
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=TIMEOUT_S):
            return host
    except urllib.error.HTTPError:
        return host
    except NO_ANSWER as error:
        raise WebhookError(
            f"The webhook at {host!r} does not answer ({_reason(error)}). Correct the variable."
        ) from None


def host_of(url: str) -> str:
    """The host of a webhook's address. Raises WebhookError for what is no address."""
    host = urlsplit(url).hostname
    if urlsplit(url).scheme not in ("http", "https") or not host:
        raise WebhookError("The webhook's address is no URL. Expected https://…; correct the variable.")
    return host


def _reason(error: Exception) -> str:
    return str(error.reason) if isinstance(error, urllib.error.URLError) else type(error).__name__

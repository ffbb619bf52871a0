"""A webhook, to which messages are sent as JSON. Its address is a secret: no error names more of it than the host."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from marin_resources.host.http_request import (
    FAILURES,
    OtherOriginError,
    TooSlowError,
    answer_to,
    is_same_origin,
    origin_of,
)
from marin_resources.types.errors import MarinError

WEBHOOK = "MARIN_WEBHOOK_URL"
"""The variable with the address of the deployment's webhook."""
TIMEOUT_S = 10.0
"""Time limit of a whole answer; Dagster gives a tick 60 s, in which several messages are sent."""


class WebhookError(MarinError):
    """A webhook that did not take a message: one sentence."""


def post(url: str, body: dict[str, Any]) -> None:
    """Send the JSON. Raises WebhookError."""
    host = host_of(url)
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", "User-Agent": "marin"}
    )
    try:
        answer_to(request, TIMEOUT_S)
    except urllib.error.HTTPError as error:
        raise WebhookError(f"The webhook at {host!r} answered {error.code}. The message is sent again later.") from None
    except OtherOriginError as error:
        raise WebhookError(f"{_redirects(host, error.origin)} The message is sent again later.") from None
    except FAILURES as error:
        raise WebhookError(
            f"The webhook at {host!r} did not answer ({_reason(error)}). The message is sent again later."
        ) from None


def require_answer(url: str) -> str:
    """The host of a webhook that answers a request without a message; any status is an answer. Raises WebhookError."""
    host = host_of(url)
    try:
        answered_url = answer_to(urllib.request.Request(url, method="HEAD"), TIMEOUT_S).url
    except urllib.error.HTTPError as error:
        answered_url = error.url
    except FAILURES as error:
        raise WebhookError(
            f"The webhook at {host!r} does not answer ({_reason(error)}). Correct the variable."
        ) from None
    if not is_same_origin(url, answered_url):
        raise WebhookError(_redirects(host, origin_of(answered_url)))
    return host


def host_of(url: str) -> str:
    """The host of a webhook's address. Raises WebhookError for a text that is no address."""
    host = urlsplit(url).hostname
    if urlsplit(url).scheme not in ("http", "https") or not host:
        raise WebhookError("The webhook's address is no URL. Expected https://…; correct the variable.")
    return host


def _redirects(host: str, origin: str) -> str:
    return (
        f"The webhook at {host!r} redirects to {origin!r}, where no message is sent. Set the variable to its address "
        "there."
    )


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) if isinstance(error, TooSlowError) else type(error).__name__

"""Send JSON to a webhook. Its address is a secret: no error names more of it than the host."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 10.0


class WebhookError(Exception):
    """A webhook that did not take a message: one sentence."""


def post(url: str, body: dict[str, Any]) -> None:
    """Send the JSON. Raises WebhookError."""
    host = urlsplit(url).hostname
    if urlsplit(url).scheme not in ("http", "https") or not host:
        raise WebhookError("The webhook's address is no URL. Expected https://…; correct the variable.")
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", "User-Agent": "marin"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):
            return
    except urllib.error.HTTPError as error:
        raise WebhookError(f"The webhook at {host!r} answered {error.code}. The message is sent again later.") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        what = type(error).__name__ if not isinstance(error, urllib.error.URLError) else str(error.reason)
        raise WebhookError(
            f"The webhook at {host!r} did not answer ({what}). The message is sent again later."
        ) from None

"""Map an error response of a dashboard to one of our errors, each with one sentence.

Ray answers nearly every failure with 500 and a traceback, whose last line may hold another traceback.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from marin_resources.ray_tpu.cluster.api.token import TOKEN_ADVICE, Token
from marin_resources.ray_tpu.cluster.errors import (
    ApiError,
    JobExistsError,
    NoSuchJobError,
    NoSuchPackageError,
    RefusedError,
    UnreachableError,
)

MAX_REASON_CHARACTERS = 300
FINAL = re.compile(
    r"Request failed with status code 4\d\d|non-terminal state|exceeds the maximum size|^(ValueError|TypeError): ",
    re.MULTILINE,
)
"""In a 500: failures that a retry would meet again."""


@dataclass(frozen=True, kw_only=True)
class ApiRequest:
    action: str
    """The beginning of an error sentence: "Submitting the job 'a'"."""
    method: str
    path: str


def error_for(request: ApiRequest, status: int, text: str, address: str, token: Token | None) -> Exception:
    """Return the error for a response whose status is not 200."""
    action, reason = request.action, one_line(token.redacted(text) if token else text)
    if status in (401, 403):
        return RefusedError(_refusal(status, address, token))
    if "already exists" in text and status in (400, 500):
        return JobExistsError(f"{action}: the cluster at {address} has it already.")
    if status == 404 and (missing := re.match(r"(Job|Package) .* does not exist", text)):
        error = NoSuchJobError if missing[1] == "Job" else NoSuchPackageError
        return error(f"{action}: the cluster at {address} does not have it.")
    if status >= 500 and not FINAL.search(text):
        return UnreachableError(f"{action}: {address} answered {status}{reason and f' ({reason})'}.")
    if status in (404, 405) or status < 400 or is_html(text):
        return not_a_dashboard(address, f"it answered {status} to {request.method} {request.path}")
    return ApiError(f"{action}: the cluster at {address} answered {status}{reason and f' ({reason})'}.")


def not_a_dashboard(address: str, reason: str) -> ApiError:
    return ApiError(
        f"There is no Ray dashboard at {address} ({reason}). Set MARIN_CLUSTER to the URL of one, such as "
        "http://10.0.0.5:8265."
    )


def is_html(text: str) -> bool:
    return text.lstrip().startswith("<")


def one_line(text: str) -> str:
    """The most informative line: the last of a traceback, the message of a JSON; "" for HTML."""
    lines = [line.strip() for line in _message(text).splitlines() if line.strip(" .\t")]
    return lines[-1].rstrip(".")[:MAX_REASON_CHARACTERS] if lines and not is_html(text) else ""


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["msg"])
    except (ValueError, KeyError, TypeError):  # not a JSON with a message
        return text


def _refusal(status: int, address: str, token: Token | None) -> str:
    if token is None:
        return f"The cluster at {address} requires a token ({status}), and none was sent: {TOKEN_ADVICE}."
    return f"The cluster at {address} rejects the token from {token.source} ({status}): {TOKEN_ADVICE}."

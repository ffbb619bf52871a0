"""What an answer of a dashboard means: its text, or which error it is.

Ray answers 500 to nearly everything, with a traceback, and a traceback in that one's last line. Here they are one line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from marin_resources.ray_tpu.cluster.api.errors import (
    ApiError,
    JobExistsError,
    NoSuchJobError,
    NoSuchPackageError,
    RefusedError,
    UnreachableError,
)
from marin_resources.ray_tpu.cluster.api.token import PLACES, Token

LONGEST = 300
FINAL = re.compile(
    r"Request failed with status code 4\d\d|non-terminal state|exceeds the maximum size|^(ValueError|TypeError): ",
    re.MULTILINE,
)
"""In a 500: what would be said again to who asks again."""


@dataclass(frozen=True, kw_only=True)
class Request:
    what: str
    """Begins the sentence of an error: "Submitting the job 'a'"."""
    method: str
    path: str


def error_of(request: Request, status: int, text: str, address: str, token: Token | None) -> Exception:
    """The error of an answer that is not 200."""
    what, said = request.what, one_line(token.hidden_in(text) if token else text)
    if status in (401, 403):
        return RefusedError(_refusal(status, address, token))
    if "already exists" in text and status in (400, 500):
        return JobExistsError(f"{what}: the cluster at {address} has it already.")
    if status == 404 and (missing := re.match(r"(Job|Package) .* does not exist", text)):
        error = NoSuchJobError if missing[1] == "Job" else NoSuchPackageError
        return error(f"{what}: the cluster at {address} does not have it.")
    if status >= 500 and not FINAL.search(text):
        return UnreachableError(f"{what}: {address} answered {status}{said and f' ({said})'}.")
    if status in (404, 405) or status < 400 or is_page(text):
        return no_dashboard(address, f"it answered {status} to {request.method} {request.path}")
    return ApiError(f"{what}: the cluster at {address} answered {status}{said and f' ({said})'}.")


def no_dashboard(address: str, why: str) -> ApiError:
    return ApiError(
        f"There is no Ray dashboard at {address} ({why}). Set MARIN_CLUSTER to the URL of one, such as "
        "http://10.0.0.5:8265."
    )


def is_page(text: str) -> bool:
    return text.lstrip().startswith("<")


def one_line(text: str) -> str:
    """The one that says most: the last of a traceback, the message of a JSON, nothing of a page."""
    lines = [line.strip() for line in _message(text).splitlines() if line.strip(" .\t")]
    return lines[-1].rstrip(".")[:LONGEST] if lines and not is_page(text) else ""


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["msg"])
    except (ValueError, KeyError, TypeError):  # it is no such JSON
        return text


def _refusal(status: int, address: str, token: Token | None) -> str:
    if token is None:
        return f"The cluster at {address} asks for a token ({status}), and none was sent: {PLACES}."
    return f"The cluster at {address} does not take the token from {token.source} ({status}): {PLACES}."

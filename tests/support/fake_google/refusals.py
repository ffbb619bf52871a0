"""Refusals as Google's APIs make them: a status, a canonical code, a sentence."""

from __future__ import annotations

import json

CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}
REASONS = {404: "notFound", 409: "alreadyExists", 412: "conditionNotMet", 400: "invalid", 429: "rateLimitExceeded"}


class RefusalError(Exception):
    def __init__(self, status: int, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code or CODES[status]

    def body(self) -> bytes:
        reason = REASONS.get(self.status, "backendError")
        errors = [{"message": self.message, "domain": "global", "reason": reason}]
        error = {"code": self.status, "message": self.message, "status": self.code, "errors": errors}
        return json.dumps({"error": error}).encode()


def not_found(what: str) -> RefusalError:
    return RefusalError(404, f"The resource '{what}' was not found")


def exists(what: str) -> RefusalError:
    return RefusalError(409, f"The resource '{what}' already exists")


def not_in_this_state(what: str, state: str, doing: str) -> RefusalError:
    return RefusalError(400, f"{what} is in state {state}, and cannot be {doing}", code="FAILED_PRECONDITION")

"""The failure of one request: its reason is the outcome of the address unless another try succeeds."""

from __future__ import annotations

PASSING = ("no_dns", "connection", "timed_out", "slow", "cut", "limited", "server_error")
"""Failures that may pass: they are tried again, and count against the host."""
LASTING = ("unresolved", "refused_address", "tls", "bad_answer", "too_large", "content_type")
"""Failures of which another try has the same."""


class FetchFailure(Exception):
    """A request without a usable answer: a reason of PASSING or LASTING, and a phrase with the values."""

    def __init__(self, reason: str, phrase: str, *, wait_s: float | None = None, status: int | None = None) -> None:
        super().__init__(phrase)
        self.reason, self.wait_s, self.status = reason, wait_s, status
        """`wait_s`: what the server states by Retry-After."""

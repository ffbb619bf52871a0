"""Why a row is no chat."""

from __future__ import annotations

from typing import Any

EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values of a key that has nothing to read."""


class NotAChat(ValueError):
    """The row is no chat that can be trained on. `reason` is the name by which it is counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

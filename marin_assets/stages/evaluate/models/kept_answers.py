"""Answers of an evaluation that has not ended, so that a killed one resumes after them.

The answers to a list of requests have a name by its content and by the model, so that those to other requests, or of
another model, are never taken.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from marin_assets.inference.journal import Journal

ANSWER = "answer"
SAVE_EVERY_S = 60.0

log = logging.getLogger(__name__)


class Answers(Protocol):
    """The answers to a list of requests, by the places of the requests: rows {"place", "answer"}."""

    rows: dict[int, dict[str, Any]]

    def add(self, *rows: dict[str, Any]) -> None: ...


class AnswersInMemory:
    """Answers that nobody keeps."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, Any]] = {}

    def add(self, *rows: dict[str, Any]) -> None:
        self.rows |= {row["place"]: row for row in rows}


class KeptAnswers:
    """Opens the answers to lists of requests; below an output, if a path is given."""

    def __init__(
        self, output_path: str | None = None, *, made_by: str = "", save_every_s: float = SAVE_EVERY_S
    ) -> None:
        """`made_by` is what the answers depend on beside the requests: the model and its engine."""
        self._output_path, self._made_by, self._save_every_s = output_path, made_by, save_every_s

    @contextmanager
    def of(self, kind: str, requests: Iterable[bytes]) -> Iterator[Answers]:
        """The answers to these requests, with those of an earlier attempt. They are saved also if the block fails."""
        if self._output_path is None:
            yield AnswersInMemory()
            return
        name = f"{kind}-{self._digest(requests)}"
        journal = Journal(self._output_path, name, save_every_s=self._save_every_s)
        if journal.rows:
            log.info("%d %s are known from an earlier attempt", len(journal.rows), kind)
        try:
            yield journal
        finally:
            journal.save()

    def _digest(self, requests: Iterable[bytes]) -> str:
        digest = hashlib.sha256(self._made_by.encode())
        for request in requests:
            digest.update(len(request).to_bytes(8, "big"))
            digest.update(request)
        return digest.hexdigest()[:24]

"""Answers of an evaluation that has not ended, so that a killed one resumes after them.

An answer is found by its request and by the model, so that none to another request, or of another model, is taken. A
request that several tasks have, or one task at several numbers of shots, is answered once.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from marin_assets.inference.journal import Journal

ANSWER = "answer"

log = logging.getLogger(__name__)


class Answers(Protocol):
    """The answers to a list of requests, by the places of the requests: rows {"place", "answer"}."""

    rows: dict[int, dict[str, Any]]

    def add(self, *rows: dict[str, Any]) -> None: ...


class AnswersByPlace:
    """The answers to a list of requests, of those that a journal has by their names."""

    def __init__(self, names: Sequence[str], answered: dict[str, dict[str, Any]], journal: Journal | None) -> None:
        self._names, self._answered, self._journal = names, answered, journal
        self.rows = {place: answered[name] for place, name in enumerate(names) if name in answered}

    def add(self, *rows: dict[str, Any]) -> None:
        """Add answers by their places. An answer that is known stays, to the last bit."""
        new: list[dict[str, Any]] = []
        for row in rows:
            name = self._names[row["place"]]
            if name not in self._answered:
                self._answered[name] = {"place": name, ANSWER: row[ANSWER]}
                new.append(self._answered[name])
            self.rows[row["place"]] = self._answered[name]
        if self._journal is not None:
            self._journal.add(*new)


class KeptAnswers:
    """Opens the answers to lists of requests; below an output, if a path is given."""

    def __init__(self, output_path: str | None = None, *, made_by: str = "", save_every_s: float | None = None) -> None:
        """`made_by` is what the answers depend on beside the requests: the model and its engine. `save_every_s` is that
        of the journal."""
        self._output_path, self._made_by, self._save_every_s = output_path, made_by, save_every_s
        self._answered: dict[str, dict[str, dict[str, Any]]] = {}
        """Kind of request -> the answers of this evaluation by their names."""
        self._journals: dict[str, Journal] = {}

    @contextmanager
    def of(self, kind: str, requests: Iterable[bytes]) -> Iterator[Answers]:
        """The answers to these requests, with those of an earlier attempt. They are saved also if the block fails."""
        names = [self._name(kind, request) for request in requests]
        journal = self._journals.get(kind)
        if journal is None and self._output_path is not None:
            folder = f"{kind}-{self._name('', b'')[:24]}"
            journal = Journal(self._output_path, folder, save_every_s=self._save_every_s)
            self._journals[kind] = journal
        answered = self._answered.setdefault(kind, dict(journal.rows) if journal is not None else {})
        answers = AnswersByPlace(names, answered, journal)
        if answers.rows:
            log.info("%d of %d %s have an answer already", len(answers.rows), len(names), kind)
        try:
            yield answers
        finally:
            if journal is not None:
                journal.save()

    def _name(self, kind: str, request: bytes) -> str:
        digest = hashlib.sha256(self._made_by.encode())
        for part in (kind.encode(), request):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        return digest.hexdigest()[:32]

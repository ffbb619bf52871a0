"""The index of a file of answers: of each row the task, the question by a digest of its texts, the scores, its place.

In:  `samples.jsonl`, a row for each answer, as evaluations write it (see `stages/evaluate/scores.py`).
Out: about 350 bytes an answer; the texts stay in the file. The last files are kept, by their stamps.

A question is its text, its choices and its expected answers. `doc_id` is a number that another version of a task gives
to another question.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from marin_assets.browse.errors import LimitError
from marin_assets.documents.document import BadRow
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.jsonl.lines import BYTE_ORDER_MARK, TooLong, read_lines
from marin_resources.storage.files import StoredFile

MOST_ANSWERS = 100_000
"""Answers of a file: MMLU has 14,042 questions, a suite of 50 tasks about 60,000."""
KEPT_FILES = 8
MOST_TASKS, MOST_METRICS = 2000, 20
"""Tasks of a file, and different sets of metrics; metrics of an answer."""
NAME_CHARACTERS = 200
NO_METRICS = ("doc_id", "target", "pick", "pick_mutual_info", "loglikelihood")
"""Numbers of a row that are no scores."""
EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Answer:
    """A row of the file."""

    question: bytes
    """The digest of the texts of the question."""
    doc_id: int | str | None
    number: int
    """The number of the row, from 0."""
    start: int
    size: int
    """Bytes of its line, and where it begins."""
    metrics: tuple[str, ...]
    values: tuple[float, ...]

    def score(self, metric: str) -> float | None:
        return self.values[self.metrics.index(metric)] if metric in self.metrics else None


@dataclass(frozen=True, kw_only=True)
class AnswerIndex:
    tasks: Mapping[str, list[Answer]]
    """Task -> its answers in the order of the file."""
    whole_texts: Mapping[str, int] = field(default_factory=dict)
    """Task -> rows without a question: such a task scores whole texts."""
    bad: int = 0
    """Lines that are no answers."""


@lru_cache(KEPT_FILES)
def index_of(file: StoredFile) -> AnswerIndex:
    """The index of a file. Raises DocumentError for a damaged file, LimitError."""
    builder = _Builder(file.path)
    start = 0
    for _, line in read_lines(file.path):
        if isinstance(line, TooLong):
            raise LimitError(f"{file.path!r:.300} has a line of more than 64 MB, so its answers cannot be compared.")
        builder.add(line, start)
        start += len(line) + 1
    return AnswerIndex(tasks=builder.tasks, whole_texts=builder.whole_texts, bad=builder.bad)


class _Builder:
    """Adds lines to an index. Equal names and numbers are one object."""

    def __init__(self, path: str) -> None:
        self.tasks: dict[str, list[Answer]] = {}
        self.whole_texts: Counter[str] = Counter()
        self.bad = 0
        self._path, self._parser, self._number, self._answers = path, LineParser(), 0, 0
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._values: dict[tuple[float, ...], tuple[float, ...]] = {}

    def add(self, line: bytes, start: int) -> None:
        text = line.removeprefix(BYTE_ORDER_MARK) if start == 0 else line
        if not text.strip():
            return
        number, self._number = self._number, self._number + 1
        row = self._parser.row(text)
        task = None if isinstance(row, BadRow) else row.get("task")
        if isinstance(row, BadRow) or not isinstance(task, str) or len(task) > NAME_CHARACTERS:
            self.bad += 1
        elif "context" not in row:
            self.whole_texts[task] += 1
        elif (question := digest_of(row)) is None:
            self.bad += 1
        else:
            self._add(row, task, question, number, start, len(line))
        tasks = max(len(self.tasks) + len(self.whole_texts), len(self._names))
        if self._answers > MOST_ANSWERS or tasks > MOST_TASKS:
            raise LimitError(
                f"{self._path!r:.300} has more than {MOST_ANSWERS:,} answers or {MOST_TASKS:,} tasks, the limit of "
                "this page. Evaluate fewer tasks in one step."
            )

    def _add(self, row: Mapping[str, Any], task: str, question: bytes, number: int, start: int, size: int) -> None:
        scores = scores_of(row)
        names, values = tuple(scores), tuple(scores.values())
        answer = Answer(
            question=question,
            doc_id=_doc_id(row.get("doc_id")),
            number=number,
            start=start,
            size=size,
            metrics=self._names.setdefault(names, names),
            values=self._values.setdefault(values, values),
        )
        self.tasks.setdefault(sys.intern(task), []).append(answer)
        self._answers += 1


def digest_of(row: Mapping[str, Any]) -> bytes | None:
    """The digest of the question of a row: its text, its choices, its expected answers. None without such texts."""
    context = row.get("context")
    if not isinstance(context, str):
        return None
    try:
        expected = json.dumps([row.get("choices"), row.get("target")], sort_keys=True).encode()
        text = context.encode()
    except (RecursionError, ValueError, TypeError):  # half surrogates, numbers of more than 4,300 digits
        return None
    return hashlib.blake2b(b"%d\n%b%b" % (len(text), text, expected), digest_size=16).digest()


def scores_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers of a row that can be scores."""
    scores: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, int | float) and name not in NO_METRICS and len(name) <= NAME_CHARACTERS:
            if abs(value) <= EXACT and math.isfinite(value):
                scores[sys.intern(str(name))] = float(value)
            if len(scores) == MOST_METRICS:
                break
    return scores


def _doc_id(value: Any) -> int | str | None:
    if isinstance(value, int):
        return value if abs(value) <= EXACT else None
    return value if isinstance(value, str) and len(value) <= NAME_CHARACTERS else None

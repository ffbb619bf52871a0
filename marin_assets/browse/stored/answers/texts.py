"""The texts of a question and of its answers: read from the files again, cut, and searched.

An index has the place of each line, so a page reads its own lines alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, TypeGuard

from marin_assets.browse.cells.short_text import ShortText, short_text, visible
from marin_assets.browse.errors import UnreadableError
from marin_assets.browse.rows.lines import row_lines, spellings_of
from marin_assets.browse.stored.answers.index import Answer, digest_of
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.jsonl.lines import BYTE_ORDER_MARK
from marin_resources.storage.files import StoredFile, open_to_read

BLOCK_BYTES = 256 * 1024
"""Bytes that one request to a bucket reads ahead."""
MOST_CHOICES, MOST_LOOKED_AT = 40, 500
"""Choices that are shown, and that are searched for an expected one."""

MOST_NATS = 1e9
"""A log-likelihood beyond it is none."""

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A choice of a question, and what each evaluation gave it."""

    text: ShortText
    is_expected: bool
    nats: list[str]
    """The log-likelihood that each evaluation gave it."""
    is_chosen: list[bool]


def open_answers(file: StoredFile) -> IO[bytes]:
    """The file, to read answers from. Raises OSError."""
    return open_to_read(file.path, block_bytes=BLOCK_BYTES)


def read_answer(raw: IO[bytes], answer: Answer) -> Row:
    """The row of an answer. Raises UnreadableError if the file was written again since its index."""
    raw.seek(answer.start)
    row = LineParser().row(raw.read(answer.size).removeprefix(BYTE_ORDER_MARK))
    if not isinstance(row, dict) or digest_of(row) != answer.question:
        raise UnreadableError("The answers were written again while they were read. Load the page again.")
    return row


def question_text(row: Row, characters: int) -> ShortText:
    """The end of the question: its examples come first."""
    context = row["context"]
    if len(context) <= characters:
        return ShortText(visible(context))
    return ShortText("…" + visible(context[-characters:]), f"{len(context):,} characters")


def expected_text(row: Row, characters: int) -> ShortText:
    """The expected answer: the text of a choice if the row has its number."""
    target, choices = row.get("target"), row.get("choices")
    expected = [choices[place] for place in _places(target, choices)] if isinstance(choices, list) else []
    if not expected:
        return short_text(target, characters)
    return short_text(expected[0] if len(expected) == 1 else expected, characters)


def answer_text(row: Row, metric: str, characters: int) -> ShortText:
    """The text that a model wrote, or that of the choice that it gave the most by this metric.

    Where a single text was scored, as of a last word that is right if it is the likeliest, it is the log-likelihood.
    """
    if "generated" in row:
        return short_text(row["generated"], characters)
    pick, choices = pick_of(row, metric), row.get("choices")
    if isinstance(choices, list) and len(choices) == 1:
        return ShortText(f"{_nats(row.get('loglikelihoods'), 0)} nats for the expected text")
    if isinstance(choices, list) and pick is not None and pick < len(choices):
        return short_text(choices[pick], characters)
    return short_text("", characters)


def pick_of(row: Row, metric: str) -> int | None:
    """The choice that a model gave the most: by log-likelihood, without that of the choice alone for acc_mutual_info,
    divided by its characters for acc_norm, as lm-eval computes them. None if the row does not have it."""
    pick = row.get("pick_mutual_info" if metric == "acc_mutual_info" else "pick")
    nats, choices = row.get("loglikelihoods"), row.get("choices")
    if metric == "acc_norm" and isinstance(nats, list) and isinstance(choices, list) and len(nats) == len(choices):
        shares = [
            value / max(len(str(choice)), 1) for value, choice in zip(nats, choices, strict=True) if _is_number(value)
        ]
        pick = shares.index(max(shares)) if shares and len(shares) == len(nats) else pick
    return pick if isinstance(pick, int) and not isinstance(pick, bool) and pick >= 0 else None


def choices_of(rows: Sequence[Row], metric: str, characters: int) -> list[Choice]:
    """The choices of a question, MOST_CHOICES at most; empty for one without choices."""
    choices = rows[0].get("choices")
    if not isinstance(choices, list):
        return []
    expected = _places(rows[0].get("target"), choices)
    picks = [pick_of(row, metric) if len(choices) > 1 else None for row in rows]
    return [
        Choice(
            text=short_text(choice, characters),
            is_expected=place in expected,
            nats=[_nats(row.get("loglikelihoods"), place) for row in rows],
            is_chosen=[pick == place for pick in picks],
        )
        for place, choice in enumerate(choices[:MOST_CHOICES])
    ]


def numbers_with(file: StoredFile, text: str, numbers: Collection[int]) -> Iterator[int]:
    """Those of the rows with these numbers whose question or choices have a text. Upper and lower case differ.

    Raises DocumentError, LimitError.
    """
    spellings, parser = spellings_of(text), LineParser()
    for number, line in row_lines(file.path):
        if number in numbers and isinstance(line, bytes) and any(spelling in line for spelling in spellings):
            row = parser.row(line)
            if isinstance(row, dict) and _has(row, text):
                yield number


def _has(row: Row, text: str) -> bool:
    choices = row.get("choices")
    texts = [row.get("context"), row.get("target"), *(choices if isinstance(choices, list) else ())]
    return any(isinstance(value, str) and text in value for value in texts)


def _places(target: Any, choices: Any) -> list[int]:
    """The numbers of the expected choices."""
    choices, targets = choices[:MOST_LOOKED_AT], target[:MOST_LOOKED_AT] if isinstance(target, list) else [target]
    numbers = [of for of in targets if isinstance(of, int) and not isinstance(of, bool) and 0 <= of < len(choices)]
    return numbers or [place for place, choice in enumerate(choices) if choice in targets]


def _nats(values: Any, place: int) -> str:
    value = values[place] if isinstance(values, list) and place < len(values) else None
    return f"{value:.2f}" if _is_number(value) else "–"


def _is_number(value: Any) -> TypeGuard[float]:
    """Whether it is a log-likelihood: a number that a division does not turn into an error."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST_NATS

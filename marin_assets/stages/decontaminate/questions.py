"""Read the questions of evaluations, as the text that must not occur in training documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import BadRow, document_files, read_rows
from marin_resources.ray_tpu.shards.input_changes import require_unchanged
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

MULTIPLE_CHOICE = ("ctx", "choices", "gold")


class QuestionError(MarinError, ValueError):
    """A row that is not a question. The message has the file and the line."""


@dataclass(frozen=True, kw_only=True)
class Question:
    evaluation: str
    id: str
    text: str
    """The text that a model would have seen; of a multiple-choice question, its context and the true choice."""


def read_questions(evaluations: Mapping[str, str], fields: Mapping[str, Sequence[str]]) -> Iterator[Question]:
    """Yield the questions of every evaluation, in order.

    `evaluations` maps each name to the path of its rows. `fields` maps an evaluation to the text fields of its rows,
    which are joined; without an entry its rows are {"ctx", "choices", "gold"}. Raises QuestionError.
    """
    for name in fields:
        if name not in evaluations:
            raise QuestionError(f"fields has {name!r}, {expected_one_of(name, sorted(evaluations), 'evaluations')}")
    for name, path in evaluations.items():
        empty = True
        files = document_files(path).shards
        for file in files:
            for number, row in read_rows(file.path):
                empty = False
                where = f"{file.path!r} line {number}"
                if isinstance(row, BadRow):
                    raise QuestionError(f"{where} is no question ({row.reason}: {row.detail}). Make the file again.")
                text = _joined(row, fields[name], where) if name in fields else _multiple_choice(row, where)
                yield Question(evaluation=name, id=str(row.get("id", number)), text=text)
        require_unchanged(files)
        if empty:
            raise QuestionError(f"The evaluation {name!r} has no question at {path!r}. Pass another file.")


def _multiple_choice(row: Mapping[str, Any], where: str) -> str:
    """Join context and true choice. The wrong choices do not follow the context in the source, so they leak nothing."""
    ctx, choices, gold = (row.get(key) for key in MULTIPLE_CHOICE)
    if not (isinstance(ctx, str) and isinstance(choices, list) and isinstance(gold, int)):
        raise QuestionError(
            f"{where} has the fields {sorted(row)}, expected the text 'ctx', the list 'choices' and the number 'gold'. "
            "List the text fields of this evaluation in `fields`."
        )
    if not 0 <= gold < len(choices):
        raise QuestionError(f"{where} has gold {gold!r}, expected the index of one of its {len(choices)} choices.")
    return f"{ctx} {choices[gold]}"


def _joined(row: Mapping[str, Any], fields: Sequence[str], where: str) -> str:
    texts: list[str] = []
    for field in fields:
        value = row.get(field)
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, str) for part in parts):
            raise QuestionError(
                f"{where} has {field!r} = {value!r:.80}, expected a text or a list of texts. "
                f"Pass other fields; it has {sorted(row)}."
            )
        texts += map(str, parts)
    return " ".join(texts)

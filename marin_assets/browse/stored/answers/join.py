"""Questions that all evaluations answered, joined by the texts of the questions; and those that are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from marin_assets.browse.errors import LimitError, NotComparableError
from marin_assets.browse.limits import ReaderGoneError
from marin_assets.browse.stored.answers.index import Answer, AnswerIndex, index_of
from marin_resources.storage.files import StoredFile

KEPT_JOINS = 2
NAMED = 5
"""Tasks in a sentence."""


@dataclass(frozen=True, slots=True)
class SharedQuestion:
    number: int
    """From 0, in the order of the first evaluation."""
    task: str
    answers: tuple[Answer, ...]
    """An answer of each evaluation."""


@dataclass(frozen=True, kw_only=True)
class SharedQuestions:
    questions: list[SharedQuestion]
    repeated: int
    """Questions that an evaluation has several times."""
    left_out: list[dict[str, int]]
    """For each evaluation, task -> answers whose question another one does not have."""
    indexes: list[AnswerIndex]

    @property
    def tasks(self) -> list[str]:
        return list(dict.fromkeys(question.task for question in self.questions))


def shared_questions(files: Sequence[StoredFile], names: Sequence[str]) -> SharedQuestions:
    """The questions of these files. Raises NotComparableError if no question is in all, DocumentError, LimitError."""
    shared = _joined(tuple(files))
    if not shared.questions:
        raise NotComparableError(_reason(shared.indexes, names))
    return shared


@lru_cache(KEPT_JOINS)
def _joined(files: tuple[StoredFile, ...]) -> SharedQuestions:
    indexes: list[AnswerIndex] = []
    for file in files:
        try:
            indexes.append(index_of(file))
        except ReaderGoneError:
            raise
        except LimitError as error:
            if not indexes:
                raise
            raise LimitError(
                f"{error} The answers of {len(indexes)} of {len(files)} evaluations were read, and are kept: load the "
                "page again to read on."
            ) from error
    return join_by_text(indexes)


def join_by_text(indexes: Sequence[AnswerIndex]) -> SharedQuestions:
    """Join the answers to the same question of the same task. A question that occurs several times is paired one to
    one, so that no answer counts twice."""
    grouped = [_by_question(index) for index in indexes]
    questions: list[SharedQuestion] = []
    repeated = 0
    used: list[Counter[str]] = [Counter() for _ in indexes]
    for (task, digest), first in grouped[0].items():
        occurrences = [first, *(of.get((task, digest), []) for of in grouped[1:])]
        if not all(occurrences):
            continue
        repeated += any(len(of) > 1 for of in occurrences)
        for answers in one_to_one(occurrences):
            questions.append(SharedQuestion(len(questions), task, answers))
            for counter in used:
                counter[task] += 1
    left_out = [
        {task: rest for task, of in index.tasks.items() if (rest := len(of) - counter[task])}
        for index, counter in zip(indexes, used, strict=True)
    ]
    return SharedQuestions(questions=questions, repeated=repeated, left_out=left_out, indexes=list(indexes))


def one_to_one(occurrences: Sequence[Sequence[Answer]]) -> list[tuple[Answer, ...]]:
    """Pair the occurrences of one question: by `doc_id` if all evaluations have the same ones, else in their order."""
    if all(len(of) == 1 for of in occurrences):
        return [tuple(of[0] for of in occurrences)]
    by_id = [_by_doc_id(of) for of in occurrences]
    if all(of.keys() == by_id[0].keys() for of in by_id):
        return [tuple(of[key] for of in by_id) for key in by_id[0]]
    return list(zip(*occurrences, strict=False))


def _by_doc_id(answers: Sequence[Answer]) -> dict[tuple[int | str | None, int], Answer]:
    """(doc_id, how many had it before) -> answer: an evaluation may score an answer in several ways."""
    seen: Counter[int | str | None] = Counter()
    keyed = {}
    for answer in answers:
        keyed[answer.doc_id, seen[answer.doc_id]] = answer
        seen[answer.doc_id] += 1
    return keyed


def _by_question(index: AnswerIndex) -> dict[tuple[str, bytes], list[Answer]]:
    grouped: dict[tuple[str, bytes], list[Answer]] = {}
    for task, answers in index.tasks.items():
        for answer in answers:
            grouped.setdefault((task, answer.question), []).append(answer)
    return grouped


def _reason(indexes: Sequence[AnswerIndex], names: Sequence[str]) -> str:
    for index, name in zip(indexes, names, strict=True):
        if not index.tasks:
            scored = (
                f"its tasks score whole texts ({_named(index.whole_texts)})" if index.whole_texts else "it is empty"
            )
            return f"{name!r:.200} has no answer to a question: {scored}. Name another evaluation."
    common = [task for task in indexes[0].tasks if all(task in index.tasks for index in indexes)]
    if not common:
        of_each = "; ".join(
            f"{name!r:.200} has {_named(index.tasks)}" for name, index in zip(names, indexes, strict=True)
        )
        return f"The evaluations have no task in common: {of_each}. Name evaluations of the same tasks."
    return (
        f"The evaluations have no question in common, by the texts of the questions and of their expected answers, "
        f"though all have the task {common[0]!r:.200}. Examples and chat templates are parts of a text: evaluate on "
        "the same data, with the same number of examples and the same template."
    )


def _named(tasks: object) -> str:
    names = [repr(task)[:100] for task in tasks] if isinstance(tasks, dict) else []
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")

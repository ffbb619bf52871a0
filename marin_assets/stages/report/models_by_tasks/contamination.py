"""The share of each task's questions that the training data of a model hold, in words.

In:  the result of a step "contamination/…" (`score_contaminated`).   Out: counts by task, and phrases about them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NOBODY_LOOKED = "nobody looked"
NOT_ON_RECORD = "its training data are not on record"
COUNTS = ("questions", "questions_contaminated", "questions_not_searchable")


@dataclass(frozen=True, kw_only=True)
class TaskContamination:
    """The questions of a task, of which some are in the training data."""

    questions: int
    contaminated: int
    not_searchable: int = 0
    """Too short, or too common: nobody knows of these."""

    @property
    def short(self) -> str:
        return f"{self.contaminated:,} of {self.questions:,}"

    @property
    def phrase(self) -> str:
        questions = "question is" if self.questions == 1 else "questions are"
        unknown = f", {self.not_searchable:,} cannot be searched" if self.not_searchable else ""
        return f"{self.short} {questions} in the training data{unknown}"


@dataclass(frozen=True, kw_only=True)
class ModelContamination:
    """The contamination of the evaluation of one model."""

    missing: str = NOBODY_LOOKED
    """Why a task has no counts."""
    tasks: Mapping[str, TaskContamination] = field(default_factory=dict)
    not_searched: Sequence[str] = ()
    """Training data that were not searched."""
    link: str = ""
    """Address of the page of the contaminated questions; empty without a browser."""


def contamination_by_task(result: Mapping[str, Any]) -> dict[str, TaskContamination]:
    """Return the counts by task, of the tasks whose counts are numbers of questions."""
    tasks = result.get("tasks")
    by_task = {}
    for task, of in tasks.items() if isinstance(tasks, Mapping) else ():
        numbers = [of.get(name) for name in COUNTS] if isinstance(of, Mapping) else []
        counts = [number for number in numbers if type(number) is int and number >= 0]
        if len(counts) == len(COUNTS):
            questions, contaminated, not_searchable = counts
            by_task[str(task)] = TaskContamination(
                questions=questions, contaminated=contaminated, not_searchable=not_searchable
            )
    return by_task


def not_searched_in(result: Mapping[str, Any]) -> list[str]:
    """Return the names of the training data that were not searched."""
    names = result.get("not_searched")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

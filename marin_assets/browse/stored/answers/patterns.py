"""Right and wrong answers: the pattern of each question, their counts, and the questions of a pattern.

A pattern has a letter for each evaluation, in their order: r for a score of 1, w for 0, p between them, n for none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from marin_assets.browse.errors import NotComparableError, NotThereError
from marin_assets.browse.stored.answers.join import SharedQuestion, SharedQuestions
from marin_assets.stages.report.compare_models import headline_of, is_lower_better
from marin_assets.stages.report.models_by_tasks.cells import mean_difference
from marin_assets.stages.report.models_by_tasks.significance import Z95
from marin_resources.types.near_names import expected_one_of

RIGHT, WRONG, PARTLY, NO_SCORE = "r", "w", "p", "n"
ANY, DIFFER = "*", "differ"
WORDS = {RIGHT: "right", WRONG: "wrong", PARTLY: "partly", NO_SCORE: "no score"}


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    question: SharedQuestion
    metric: str
    scores: tuple[float | None, ...]
    pattern: str


@dataclass(frozen=True, kw_only=True)
class ScoredQuestions:
    """The shared questions of the chosen tasks, by the metric of each task."""

    questions: list[ScoredQuestion]
    metrics: dict[str, str]
    """Task -> its metric."""
    usable: list[str] = field(default_factory=list)
    """The metrics of these tasks that can be chosen."""
    without_metric: list[str] = field(default_factory=list)
    """Tasks that are left out: no metric of them has scores from 0 to 1 of all evaluations, or not the chosen one."""


@dataclass(frozen=True, kw_only=True)
class Total:
    """An evaluation over all questions."""

    right: int
    wrong: int
    others: int
    """Questions that it answered partly, or that have no score."""
    mean: float | None
    difference: float | None = None
    """The mean less that of the first evaluation, over the questions at which both have a score."""
    half: float | None = None
    """Half of the 95% confidence interval of that difference, of paired scores."""


def score(shared: SharedQuestions, task: str, metric: str) -> ScoredQuestions:
    """The scores of the questions of a task, or of all. Raises NotThereError for an unknown task or metric,
    NotComparableError if no task has a metric."""
    if task and task not in shared.tasks:
        raise NotThereError(f"task is {task[:200]!r}, {expected_one_of(task[:200], shared.tasks, 'shared tasks')}")
    by_task: dict[str, list[SharedQuestion]] = {}
    for question in shared.questions:
        if not task or question.task == task:
            by_task.setdefault(question.task, []).append(question)
    usable = {name: usable_metrics(questions) for name, questions in by_task.items()}
    every = list(dict.fromkeys(name for names in usable.values() for name in names))
    if metric and every and metric not in every:
        raise NotThereError(f"metric is {metric[:200]!r}, {expected_one_of(metric[:200], every, 'metrics')}")
    chosen = {name: metric or headline(names) for name, names in usable.items() if names and metric in (*names, "")}
    if not chosen:
        raise NotComparableError(
            "No metric of the shared questions has scores from 0 to 1, which are right or wrong. Name evaluations of "
            "tasks with answers."
        )
    questions = [_scored(question, chosen[name]) for name in chosen for question in by_task[name]]
    without = [name for name in by_task if name not in chosen]
    return ScoredQuestions(questions=questions, metrics=chosen, usable=every, without_metric=without)


def usable_metrics(questions: Sequence[SharedQuestion]) -> list[str]:
    """The metrics of a task that each evaluation has, with scores from 0 to 1 alone, in the order of the file."""
    count = len(questions[0].answers)
    of_each = [dict.fromkeys(name for q in questions for name in q.answers[i].metrics) for i in range(count)]
    names = [name for name in of_each[0] if all(name in of for of in of_each) and not is_lower_better(name)]
    values = ((name, answer.score(name)) for q in questions for answer in q.answers for name in names)
    outside = {name for name, value in values if value is not None and not 0 <= value <= 1}
    return [name for name in names if name not in outside]


def headline(names: Sequence[str]) -> str:
    """The metric of a task for which none was chosen, as `compare_models` chooses it."""
    return headline_of(names) or names[0]


def choose(scored: Sequence[ScoredQuestion], pattern: str, count: int) -> list[ScoredQuestion]:
    """The questions of a pattern, in which ANY is any letter; of DIFFER those that not all answered alike.

    Raises NotThereError for a pattern that is none of `count` evaluations.
    """
    if not pattern:
        return list(scored)
    if pattern == DIFFER:
        return [question for question in scored if len(set(question.pattern)) > 1]
    if len(pattern) != count or not set(pattern) <= {*WORDS, ANY}:
        raise NotThereError(
            f"pattern is {pattern[:60]!r}, expected a letter of r, w, p, n or * for each of the {count} evaluations, "
            f"or '{DIFFER}'. Choose a pattern from the page."
        )
    return [question for question in scored if matches(question.pattern, pattern)]


def matches(pattern: str, filter_: str) -> bool:
    return all(chosen in (letter, ANY) for letter, chosen in zip(pattern, filter_, strict=True))


def counts_of(scored: Iterable[ScoredQuestion], count: int) -> list[tuple[str, int]]:
    """(pattern, questions): for two evaluations all four of right and wrong, and others that occur; the most first."""
    counts = Counter(question.pattern for question in scored)
    if count == 2:
        first = ["".join(letters) for letters in product(RIGHT + WRONG, repeat=2)]
        others = sorted(counts.keys() - set(first), key=lambda pattern: (-counts[pattern], pattern))
        return [(pattern, counts[pattern]) for pattern in (*first, *others)]
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def totals_of(scored: Sequence[ScoredQuestion], count: int) -> list[Total]:
    """The totals of each evaluation."""
    totals = []
    for place in range(count):
        values = [value for question in scored if (value := question.scores[place]) is not None]
        letters = Counter(question.pattern[place] for question in scored)
        difference, error = _difference(scored, place)
        totals.append(
            Total(
                right=letters[RIGHT],
                wrong=letters[WRONG],
                others=letters[PARTLY] + letters[NO_SCORE],
                mean=sum(values) / len(values) if values else None,
                difference=difference,
                half=None if error is None else Z95 * error,
            )
        )
    return totals


def _difference(scored: Sequence[ScoredQuestion], place: int) -> tuple[float | None, float | None]:
    pairs = [(q.scores[place], q.scores[0]) for q in scored] if place else []
    complete = [(mine, first) for mine, first in pairs if mine is not None and first is not None]
    return mean_difference(complete) if len(complete) > 1 else (None, None)


def _scored(question: SharedQuestion, metric: str) -> ScoredQuestion:
    scores = tuple(answer.score(metric) for answer in question.answers)
    return ScoredQuestion(question, metric, scores, "".join(map(_letter, scores)))


def _letter(value: float | None) -> str:
    if value is None:
        return NO_SCORE
    return RIGHT if value == 1 else WRONG if value == 0 else PARTLY

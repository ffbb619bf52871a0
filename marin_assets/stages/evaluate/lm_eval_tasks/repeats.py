"""Scores of questions that are answered several times, from lm-eval's answers: the mean over them, pass@k and maj@k.

lm-eval scores what a task's filters make of all answers to a question, the first one as a rule. Here each answer is
scored by itself, by the task's own filters and metrics:

<metric>_avg@<n>   the mean over all n answers
<metric>_pass@<k>  the probability that one of k answers is right, of metrics that are 0 or 1: the unbiased estimator of
                   Chen et al. 2021 (arXiv 2107.03374); of tasks that run programs "pass@<k>"
<metric>_maj@<k>   the metric of what most of the first k answers have in common after the filters (self-consistency,
                   Wang et al. 2022, arXiv 2203.11171), of tasks that run no programs

The standard error of each is that of a mean over questions: the answers to a question are not independent.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from marin_assets.documents.scores import clustered_error, pass_at
from marin_assets.stages.evaluate.lm_eval_config import EvaluationError
from marin_assets.stages.evaluate.scores import NO_FILTER, metric_name, scored_numbers

OF_PROGRAMS = ("pass@1", "pass_at_1")
"""Metrics of one program, as tasks call them."""
VOTES = ("majority_vote", "take_first_k")
"""Filters of several answers, which mean nothing to one."""
TEXT_CHARACTERS = 20_000
"""Characters of an answer in a row; the end of a longer one is left out."""


@dataclass
class _Answered:
    """The answers to one question, as one filter leaves them."""

    metrics: list[dict[str, float]] = field(default_factory=list)
    texts: list[Any] = field(default_factory=list)


def repeats_of(task: Any) -> int:
    """The number of answers to each question of lm-eval's task."""
    generates = [request for request in task.instances if request.request_type == "generate_until"]
    return max((request.repeats or 1 for request in generates), default=1)


def check_pass_at(ks: Sequence[int], tasks: Sequence[Any]) -> None:
    """Raise EvaluationError for more answers than a repeated task has, and where no task is repeated."""
    repeated = {task.config.task: repeats for task in tasks if (repeats := repeats_of(task)) > 1}
    if ks and not repeated:
        raise EvaluationError(
            f"HarnessOptions has pass_at={tuple(ks)}, and each question is answered once. Set repeats to "
            f"{max(ks)} at least."
        )
    for task, repeats in repeated.items():
        if max(ks, default=0) > repeats:
            raise EvaluationError(
                f"HarnessOptions has pass_at={tuple(ks)}, and task {task!r} answers each question {repeats} times. Set "
                f"repeats to {max(ks)} at least, or leave {max(ks)} out."
            )


def add_repeats(results: Mapping[str, Any], tasks: Mapping[str, Any], ks: Sequence[int]) -> None:
    """Add the scores to lm-eval's results of a run, and those of each question and answer to its samples.

    `tasks` are lm-eval's by name, with their answers. `ks` are numbers of answers for pass@k and maj@k, beside all.
    """
    for name, task in tasks.items():
        if (repeats := repeats_of(task)) > 1:
            _add(results, name, task, repeats, sorted({*ks, repeats}))


def _add(results: Mapping[str, Any], name: str, task: Any, repeats: int, ks: Sequence[int]) -> None:
    answered = _score_each(task, repeats)
    answers = _answers(task, answered)
    directions = results["higher_is_better"].setdefault(name, {})
    for filter_name, questions in answered.items():
        of_questions: dict[Any, dict[str, float]] = {doc_id: {} for doc_id in questions}
        for metric in _averaged(task, questions):
            for doc_id, scores in _scores(metric, questions, ks).items():
                of_questions[doc_id] |= scores
        for score in next(iter(of_questions.values())):
            values = [scores[score] for scores in of_questions.values()]
            results["results"][name][f"{score},{filter_name}"] = math.fsum(values) / len(values)
            if len(values) > 1:
                error = clustered_error(values, range(len(values)))
                results["results"][name][f"{score}_stderr,{filter_name}"] = error
            directions[score] = directions.get(score.rpartition("_")[0], True)
        for sample in results["samples"][name]:
            if sample["filter"] == filter_name:
                scores = of_questions[sample["doc_id"]]
                sample.update(scores, metrics=list(dict.fromkeys([*sample["metrics"], *scores])))
    for sample in results["samples"][name]:
        sample["answers"] = answers[sample["doc_id"]]


def _score_each(task: Any, repeats: int) -> dict[str, dict[Any, _Answered]]:
    """Score each answer by itself. Returns the answers by filter and question."""
    answered: dict[str, dict[Any, _Answered]] = defaultdict(lambda: defaultdict(_Answered))
    for number in range(repeats):
        questions: dict[Any, list[Any]] = defaultdict(list)
        for request in sorted(task.instances, key=lambda request: request.idx):
            alone = copy(request)
            alone.resps, alone.filtered_resps = [request.resps[number]], {}
            questions[request.doc_id].append(alone)
        with _one_program(task):
            for steps in filter(_is_for_one, task._filters):
                steps.apply([request for requests in questions.values() for request in requests])
                for doc_id, requests in questions.items():
                    filtered = [request.filtered_resps[steps.name] for request in requests]
                    of = answered[steps.name][doc_id]
                    of.metrics.append(scored_numbers(task.process_results(requests[0].doc, filtered)))
                    of.texts.append(filtered[0] if len(filtered) == 1 else filtered)
    return answered


def _is_for_one(steps: Any) -> bool:
    from lm_eval.api.registry import get_filter

    votes = [get_filter(name) for name in VOTES]
    return not any(isinstance(step, partial) and step.func in votes for step in steps.filters)


@contextmanager
def _one_program(task: Any) -> Iterator[None]:
    """Have a task that runs programs score one: its metric may want as many as the largest k of its YAML."""
    own: dict[str, dict[str, Any]] = task._metric_fn_kwargs
    if getattr(task, "UNSAFE_CODE", False):
        task._metric_fn_kwargs = {
            name: {**given, **({"k": [1]} if "k" in given else {})} for name, given in own.items()
        }
    try:
        yield
    finally:
        task._metric_fn_kwargs = own


def _averaged(task: Any, questions: Mapping[Any, _Answered]) -> list[str]:
    """The metrics that every answer has, and whose score is a mean."""
    from lm_eval.api.metrics import mean

    every = [metrics for of in questions.values() for metrics in of.metrics]
    shared = [metric for metric in every[0] if all(metric in metrics for metrics in every)]
    return [metric for metric in shared if task.aggregation().get(metric, mean) is mean]


def _scores(metric: str, questions: Mapping[Any, _Answered], ks: Sequence[int]) -> dict[Any, dict[str, float]]:
    """The scores of each question over its answers."""
    values = {doc_id: [metrics[metric] for metrics in of.metrics] for doc_id, of in questions.items()}
    is_verdict = all(value in (0, 1) for of in values.values() for value in of)
    runs_programs = metric in OF_PROGRAMS
    stem = "" if runs_programs else f"{metric}_"
    votes = not runs_programs and all(isinstance(text, str) for of in questions.values() for text in of.texts)
    scores: dict[Any, dict[str, float]] = {}
    for doc_id, of in values.items():
        scores[doc_id] = {f"{stem}avg@{len(of)}": math.fsum(of) / len(of)}
        if is_verdict:
            scores[doc_id] |= {f"{stem}pass@{k}": pass_at(k, len(of), int(sum(of))) for k in ks}
        if votes:
            scores[doc_id] |= {f"{stem}maj@{k}": of[_voted(questions[doc_id].texts[:k])] for k in ks if k > 1}
    return scores


def _voted(texts: Sequence[str]) -> int:
    """The place of the most frequent text, the first of equally frequent ones."""
    return texts.index(Counter(texts).most_common(1)[0][0])


def _answers(task: Any, answered: Mapping[str, Mapping[Any, _Answered]]) -> dict[Any, list[dict[str, Any]]]:
    """The answers to each question, as rows: what was written, what filters leave of it, and the metrics."""
    answers: dict[Any, list[dict[str, Any]]] = {}
    for request in task.instances:
        answers.setdefault(request.doc_id, [{"generated": _cut(text)} for text in request.resps])
    for filter_name, questions in answered.items():
        for doc_id, of in questions.items():
            for row, text, metrics in zip(answers[doc_id], of.texts, of.metrics, strict=True):
                if filter_name != NO_FILTER:
                    row.setdefault("extracted", {})[filter_name] = _cut(str(text))
                row |= {metric_name(f"{metric},{filter_name}"): value for metric, value in metrics.items()}
    return answers


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"

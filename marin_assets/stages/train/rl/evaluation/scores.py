"""Scores of the answers to examples, in the form of the other evaluations: they are compared by the same steps.

<lesson>: reward   the mean over examples of the mean reward of their answers
          pass@k   the probability that one of k answers passes: the unbiased estimator of Chen et al. 2021

Standard errors are those of a mean over examples, since the answers to one are not independent; examples that an
environment gives twice count as one there.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marin_assets.documents.scores import bounds_of, clustered_error, pass_at
from marin_assets.stages.train.rl.evaluation.config import RlEvalConfig
from marin_assets.stages.train.rl.rollout import Rollout

WITHOUT_PROMPT = ("example_", "prompt_")
"""Beginnings of the reasons of answers whose example the model was never given."""
PASSAGE = "passage"
"""The group of a question, to `compare_models`."""
Row = dict[str, Any]


def was_prompted(rollout: Rollout) -> bool:
    return not rollout.reason.startswith(WITHOUT_PROMPT)


def rows_of(config: RlEvalConfig, rollouts: Iterable[Rollout]) -> list[Row]:
    """Return a row for each example that the model was given, by lesson, with its scores and its answers.

    An answer whose grading failed has the reward 0.
    """
    by_group: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        if was_prompted(rollout):
            by_group.setdefault(rollout.group, []).append(rollout)
    rows = [_row(config, group % config.examples, answers) for group, answers in sorted(by_group.items())]
    counts = Counter((row["task"], row[PASSAGE]) for row in rows)
    for row in rows:
        if counts[row["task"], row[PASSAGE]] == 1:
            del row[PASSAGE]
    return rows


def _row(config: RlEvalConfig, number: int, answers: Sequence[Rollout]) -> Row:
    rewards = [answer.reward or 0.0 for answer in answers]
    passes = [float(reward >= config.passing_reward) for reward in rewards]
    ks = sorted({1, config.samples, *config.pass_at})
    example = json.dumps(answers[0].example, sort_keys=True)
    return {
        "task": answers[0].lesson,
        "doc_id": number,
        "target": example,
        "context": answers[0].prompt,
        "generated": answers[0].answer,
        "answers": [
            {"generated": answer.answer, "reward": reward, "pass@1": passed}
            for answer, reward, passed in zip(answers, rewards, passes, strict=True)
        ],
        PASSAGE: hashlib.blake2b(example.encode(), digest_size=8).hexdigest(),
        "reward": math.fsum(rewards) / len(rewards),
        **{f"pass@{k}": pass_at(k, len(passes), int(sum(passes))) for k in ks},
    }


def scores_of(config: RlEvalConfig, rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Return by lesson: instances, each metric, its standard error and the bounds of its 95% confidence interval."""
    by_lesson: dict[str, list[Row]] = {}
    for row in rows:
        by_lesson.setdefault(row["task"], []).append(row)
    metrics = ["reward", *(f"pass@{k}" for k in sorted({1, config.samples, *config.pass_at}))]
    return {lesson: _scores(of, metrics) for lesson, of in by_lesson.items()}


def _scores(rows: Sequence[Row], metrics: Sequence[str]) -> dict[str, float]:
    scores: dict[str, float] = {"instances": len(rows)}
    examples = [row.get(PASSAGE, row["doc_id"]) for row in rows]
    for metric in metrics:
        values = [row[metric] for row in rows]
        scores[metric] = math.fsum(values) / len(values)
        if len(set(examples)) > 1:
            scores[f"{metric}_stderr"] = clustered_error(values, examples)
    return {**scores, **bounds_of(scores)}


def table_of(scores: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """One row for each metric of a lesson, with the columns of `scores.csv`."""
    return [
        {
            "task": lesson,
            "metric": metric,
            "value": value,
            "error": of.get(f"{metric}_stderr"),
            "n": of["instances"],
            "higher_is_better": True,
        }
        for lesson, of in scores.items()
        for metric, value in of.items()
        if metric == "reward" or metric.removeprefix("pass@").isdigit()
    ]

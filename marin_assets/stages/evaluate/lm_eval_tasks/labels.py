"""Labels of the scores of an evaluation, of which no two are equal.

A task has its alias as label, or else its name. A member of a group or tag with an alias has that before its name:
"mmlu_5shot/mmlu_anatomy". Tasks of one label and different numbers of shots end with these: "mmlu_anatomy_5shot".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from marin_assets.stages.evaluate.lm_eval_config import EvaluationError
from marin_assets.stages.evaluate.suites import EvalTask

Labels: TypeAlias = dict[str, str]
"""A task's name in lm-eval's results, and those of the members of a group or tag -> the label of its scores."""

BY_TASK = ("results", "samples", "groups", "configs", "versions", "n-shot", "higher_is_better", "n-samples")
"""Parts of lm-eval's results that have an entry for each task; the others are of the run."""
MEMBERS = "group_subtasks"
"""The part that has the members of each group."""


def label_tasks(members: Sequence[tuple[EvalTask, Sequence[str]]]) -> list[Labels]:
    """Return the labels of each task of an evaluation, of the tasks with all of their members.

    Raises EvaluationError for two tasks that would have one label and one number of shots.
    """
    labels = [
        {name: task.label if name == task.name else _of_member(task, name) for name in dict.fromkeys((task.name, *of))}
        for task, of in members
    ]
    claims: dict[str, set[tuple[str, int | None]]] = defaultdict(set)
    for (task, _), of in zip(members, labels, strict=True):
        for name, label in of.items():
            claims[label].add((name, task.num_fewshot))
    for (task, _), of in zip(members, labels, strict=True):
        for name, label in of.items():
            if len(claims[label]) > 1 and task.num_fewshot is not None:
                of[name] = f"{label}_{task.num_fewshot}shot"
    _require_distinct([task for task, _ in members], labels)
    return labels


def relabel(results: Mapping[str, Any], labels: Sequence[Labels]) -> dict[str, Any]:
    """Return lm-eval's results of a run by the labels of its tasks. A score that two tasks share has both labels."""
    relabelled = dict(results)
    for part in BY_TASK:
        of_part = results.get(part, {})
        relabelled[part] = {of[name]: of_part[name] for of in labels for name in of if name in of_part}
    members = results.get(MEMBERS, {})
    relabelled[MEMBERS] = {
        of[name]: [of[member] for member in members[name] if member in of]
        for of in labels
        for name in of
        if name in members
    }
    return relabelled


def _of_member(task: EvalTask, name: str) -> str:
    return name if task.alias is None else f"{task.alias}/{name}"


def _require_distinct(tasks: Sequence[EvalTask], labels: Sequence[Labels]) -> None:
    owners: dict[str, tuple[str, EvalTask]] = {}
    for task, of in zip(tasks, labels, strict=True):
        for name, label in of.items():
            other, its = owners.setdefault(label, (name, task))
            if other != name or its.num_fewshot != task.num_fewshot:
                raise EvaluationError(
                    f"The scores of two tasks have the label {label!r}: of {other!r} in {its}, and of {name!r} in "
                    f"{task}. Give one of them another alias."
                )

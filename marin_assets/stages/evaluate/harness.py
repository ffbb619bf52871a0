"""Run lm-eval's tasks on a model, those with one number of shots together.

All requests of all tasks are built and checked before the model gets one: a task that cannot run ends the evaluation
after seconds, and not after the hours of the others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.inference.jax_model import ModelError
from marin_assets.stages.evaluate.lm_eval_config import EvaluationError, HarnessOptions, LmEvalConfig, eval_tasks
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.step.values import unwrap_versioned_value

BY_TASK = ("results", "samples", "groups", "configs", "versions", "n-shot", "higher_is_better", "n-samples")
"""Parts of lm-eval's results that have an entry for each task; the others are of the run."""
NAMED = 5
"""Tasks in an error."""

log = logging.getLogger(__name__)


def run_tasks(config: LmEvalConfig, manager: Any, lm: Any) -> dict[str, Any]:
    """Run the tasks on `lm`. Returns lm-eval's results, by the tasks' labels.

    Raises EvaluationError, before any request is answered, if requests of a task cannot be.
    """
    from lm_eval import evaluator

    from marin_assets.stages.evaluate.models.task_requests import prepare  # imports lm-eval at its top

    runs = [(together, _arguments(config, together)) for together in run_together(eval_tasks(config))]
    prepared = [prepare(lm, manager, arguments) for _, arguments in runs]
    _check_requests(lm, [task for of_run in prepared for task in of_run.tasks])
    merged: dict[str, Any] = {part: {} for part in BY_TASK}
    for (together, arguments), tasks in zip(runs, prepared, strict=True):
        results = evaluator.simple_evaluate(lm, task_manager=tasks, **arguments)
        labels = labels_of(together, results)
        for part, value in results.items():
            if part in BY_TASK:
                merged[part] |= {labels.get(name, name): of_task for name, of_task in value.items()}
            else:
                merged[part] = value
    return merged


def _arguments(config: LmEvalConfig, together: Sequence[EvalTask]) -> dict[str, Any]:
    """Those of lm-eval's `simple_evaluate`."""
    options = config.options or unwrap_versioned_value(HarnessOptions())
    return {
        "tasks": [task.name for task in together],
        "num_fewshot": together[0].num_fewshot,
        "limit": config.max_eval_instances,
        "bootstrap_iters": options.bootstrap_iters,
        "apply_chat_template": options.apply_chat_template,
        "system_instruction": options.system_instruction,
        "fewshot_as_multiturn": options.fewshot_as_multiturn,
        "fewshot_random_seed": options.seed,
        "log_samples": True,
    }


def _check_requests(lm: Any, tasks: Sequence[Any]) -> None:
    refused: dict[str, str] = {}
    for task in tasks:
        try:
            for request in task.instances:
                lm.check(request)
        except ModelError as error:
            refused[task.config.task] = str(error)
    if refused:
        reasons = " ".join(f"Task {name!r}: {reason}" for name, reason in list(refused.items())[:NAMED])
        raise EvaluationError(
            f"{len(refused)} of {len(tasks)} tasks cannot run on this model, so none was begun. {reasons} Or leave "
            f"{'it' if len(refused) == 1 else 'them'} out of `tasks`."
        )


def cut_by_task(samples: Mapping[str, Sequence[Mapping[str, Any]]], lm: Any) -> dict[str, int]:
    """Return the number of questions whose context was longer than the window, of the tasks that have some."""
    cut_questions = {
        task: len({row["doc_id"] for row in rows if any(map(lm.is_cut, row["arguments"]))})
        for task, rows in samples.items()
    }
    for task, cut in cut_questions.items():
        if cut:
            log.warning("%s: the context of %d questions is longer than the window, its beginning is cut", task, cut)
    return {task: cut for task, cut in sorted(cut_questions.items()) if cut}


def run_together(tasks: Sequence[EvalTask]) -> list[list[EvalTask]]:
    """The tasks in as few runs as have one number of shots, and no task twice."""
    runs: list[list[EvalTask]] = []
    for task in tasks:
        for run in runs:
            if run[0].num_fewshot == task.num_fewshot and task.name not in [earlier.name for earlier in run]:
                run.append(task)
                break
        else:
            runs.append([task])
    return runs


def labels_of(tasks: Sequence[EvalTask], results: Mapping[str, Any]) -> dict[str, str]:
    """The labels of the scores of each task; in a group with an alias: "mmlu_5shot/mmlu_anatomy"."""
    children: Mapping[str, Sequence[str]] = results.get("group_subtasks") or {}
    labels: dict[str, str] = {}
    for task in tasks:
        if task.alias is None:
            continue
        labels[task.name] = task.alias
        pending = list(children.get(task.name, ()))
        while pending:
            name = pending.pop()
            labels[name] = f"{task.alias}/{name}"
            pending += children.get(name, ())
    return labels

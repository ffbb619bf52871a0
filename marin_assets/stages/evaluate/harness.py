"""Run lm-eval's tasks on a model, those with one number of shots together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.evaluate.lm_eval_config import HarnessOptions, LmEvalConfig, eval_tasks
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.step.values import unwrap_versioned_value

BY_TASK = ("results", "samples", "groups", "configs", "versions", "n-shot", "higher_is_better", "n-samples")
"""Parts of lm-eval's results that have an entry for each task; the others are of the run."""


def run_tasks(config: LmEvalConfig, manager: Any, lm: Any) -> dict[str, Any]:
    """Run the tasks on `lm`. Returns lm-eval's results, by the tasks' labels."""
    from lm_eval import evaluator

    options = config.options or unwrap_versioned_value(HarnessOptions())
    found: dict[str, Any] = {part: {} for part in BY_TASK}
    for together in run_together(eval_tasks(config)):
        results = evaluator.simple_evaluate(
            lm,
            tasks=[task.name for task in together],
            task_manager=manager,
            num_fewshot=together[0].num_fewshot,
            limit=config.max_eval_instances,
            bootstrap_iters=options.bootstrap_iters,
            apply_chat_template=options.apply_chat_template,
            system_instruction=options.system_instruction,
            fewshot_as_multiturn=options.fewshot_as_multiturn,
            fewshot_random_seed=options.seed,
            log_samples=True,
        )
        labels = labels_of(together, results)
        for part, value in results.items():
            if part in BY_TASK:
                found[part] |= {labels.get(name, name): each for name, each in value.items()}
            else:
                found[part] = value
    return found


def run_together(tasks: Sequence[EvalTask]) -> list[list[EvalTask]]:
    """The tasks in as few runs as have one number of shots, and no task twice."""
    runs: list[list[EvalTask]] = []
    for task in tasks:
        for run in runs:
            if run[0].num_fewshot == task.num_fewshot and task.name not in [one.name for one in run]:
                run.append(task)
                break
        else:
            runs.append([task])
    return runs


def labels_of(tasks: Sequence[EvalTask], results: Mapping[str, Any]) -> dict[str, str]:
    """What the scores of each task are called; those in a group with an alias: "mmlu_5shot/mmlu_anatomy"."""
    children: Mapping[str, Sequence[str]] = results.get("group_subtasks") or {}
    found: dict[str, str] = {}
    for task in tasks:
        if task.alias is None:
            continue
        found[task.name] = task.alias
        left = list(children.get(task.name, ()))
        while left:
            name = left.pop()
            found[name] = f"{task.alias}/{name}"
            left += children.get(name, ())
    return found

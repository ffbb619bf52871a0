"""Run lm-eval's tasks on a model, those with one number of shots together.

All requests of all tasks are built and checked before the model gets one: a task that cannot run ends the evaluation
after seconds, and not after the hours of the others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from marin_assets.inference.jax_model import ModelError
from marin_assets.stages.evaluate.lm_eval_config import EvaluationError, HarnessOptions, LmEvalConfig, eval_tasks
from marin_assets.stages.evaluate.lm_eval_tasks.labels import BY_TASK, MEMBERS, label_tasks, relabel
from marin_assets.stages.evaluate.models.generation_settings import overriding, temperature_of
from marin_assets.stages.evaluate.scores import finite_numbers
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.step.values import unwrap_versioned_value

NAMED = 5
"""Tasks in an error."""

log = logging.getLogger(__name__)


def run_tasks(config: LmEvalConfig, manager: Any, lm: Any) -> dict[str, Any]:
    """Run the tasks on `lm`. Returns lm-eval's results, by the tasks' labels.

    Raises EvaluationError, before any request is answered, for a task that cannot be loaded or scored, or whose
    requests cannot be answered.
    """
    from lm_eval import evaluator

    from marin_assets.stages.evaluate.lm_eval_tasks.repeats import add_repeats, check_pass_at
    from marin_assets.stages.evaluate.lm_eval_tasks.task_requests import (  # imports lm-eval at its top
        check_scoring,
        prepare,
    )

    options = _options(config)
    runs = [(together, _arguments(config, together)) for together in run_together(eval_tasks(config))]
    prepared = [prepare(lm, manager, arguments, options.repeats) for _, arguments in runs]
    of_runs = [(task, tasks) for (together, _), tasks in zip(runs, prepared, strict=True) for task in together]
    labels = iter(label_tasks([(task, tasks.members[task.name]) for task, tasks in of_runs]))
    tasks_of_runs = [task for of_run in prepared for task in of_run.tasks]
    _check_requests(lm, tasks_of_runs)
    check_pass_at(options.pass_at or (), tasks_of_runs)
    check_scoring(tasks_of_runs)
    for (together, _), of_run in zip(runs, prepared, strict=True):
        _warn_about_shots(together[0].num_fewshot, of_run.tasks)
    merged: dict[str, Any] = {}
    for (together, arguments), tasks in zip(runs, prepared, strict=True):
        with same_languages():
            results = evaluator.simple_evaluate(lm, task_manager=tasks, **arguments)
            add_repeats(results, tasks.by_name, options.pass_at or ())
        for part, value in relabel(results, [next(labels) for _ in together]).items():
            merged[part] = {**merged.get(part, {}), **value} if part in (*BY_TASK, MEMBERS) else value
    _require_scores({task: merged["results"][task] for task in merged["samples"]})
    return merged


@contextmanager
def same_languages() -> Iterator[None]:
    """Let langdetect, by which IFEval finds the language of an answer, draw the same numbers each time."""
    from langdetect import DetectorFactory

    before, DetectorFactory.seed = DetectorFactory.seed, 0
    try:
        yield
    finally:
        DetectorFactory.seed = before


def _options(config: LmEvalConfig) -> HarnessOptions:
    options: HarnessOptions = config.options or unwrap_versioned_value(HarnessOptions())
    return options


def _arguments(config: LmEvalConfig, together: Sequence[EvalTask]) -> dict[str, Any]:
    """Those of lm-eval's `simple_evaluate`."""
    options = _options(config)
    return {
        "tasks": [task.name for task in together],
        "num_fewshot": together[0].num_fewshot,
        "limit": config.max_eval_instances,
        "bootstrap_iters": options.bootstrap_iters,
        "apply_chat_template": options.apply_chat_template,
        "system_instruction": options.system_instruction,
        "fewshot_as_multiturn": options.fewshot_as_multiturn,
        "fewshot_random_seed": options.seed,
        "gen_kwargs": overriding(options.gen_kwargs or {}) or None,
        "log_samples": True,
        "confirm_run_unsafe_code": options.confirm_run_unsafe_code,
    }


def _warn_about_shots(requested: int | None, tasks: Sequence[Any]) -> None:
    """lm-eval keeps 0 shots where a task's YAML has them."""
    names = [task.config.task for task in tasks if requested and not task.config.num_fewshot]
    if names:
        log.warning(
            "%s run without solved examples, not with %d: their YAML has num_fewshot: 0, which lm-eval keeps",
            ", ".join(names[:NAMED]) + " and others" * (len(names) > NAMED),
            requested,
        )


def _check_requests(lm: Any, tasks: Sequence[Any]) -> None:
    refused: dict[str, str] = {}
    for task in tasks:
        try:
            for request in task.instances:
                lm.check(request)
                _require_different_answers(request)
        except ModelError as error:
            refused[task.config.task] = str(error)
    if refused:
        reasons = " ".join(f"Task {name!r}: {reason}" for name, reason in list(refused.items())[:NAMED])
        raise EvaluationError(
            f"{len(refused)} of {len(tasks)} tasks cannot run on this model, so none was begun. {reasons} Or leave "
            f"{'it' if len(refused) == 1 else 'them'} out of `tasks`."
        )


def _require_different_answers(request: Any) -> None:
    repeats = request.repeats or 1
    if repeats > 1 and request.request_type == "generate_until" and not temperature_of(request.args[1]):
        raise ModelError(
            f"It answers each question {repeats} times and generates greedily, so all answers would be equal. Pass "
            'HarnessOptions(gen_kwargs={"do_sample": True, "temperature": 0.7}), or repeats=1.'
        )


def _require_scores(results: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise EvaluationError for a task without a score. A group may have none."""
    without = [task for task, metrics in results.items() if not any("," in key for key in finite_numbers(metrics))]
    if without:
        raise EvaluationError(
            f"Task {without[0]!r} has no score that is a number: lm-eval reports {dict(results[without[0]])!r:.500}. "
            "Repair its metrics, or leave it out of `tasks`."
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

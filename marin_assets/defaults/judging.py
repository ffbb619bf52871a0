"""Create the steps in which a model answers instructions, and a model judges the answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from marin_assets.defaults.environment import extras_on
from marin_assets.inference.engine import Endpoint, Engine, in_version, key_variables, require_engine
from marin_assets.stages.judge.answer_instructions import AnswerInstructionsConfig, answer_instructions
from marin_assets.stages.judge.compare_answers import CompareAnswersConfig, compare_answers
from marin_assets.stages.judge.grade_answers import GradeAnswersConfig, grade_answers
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation, expect
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, VersionedValue, output_path_of, versioned
from marin_resources.hardware.resources import Resources, cpu
from marin_resources.types.near_names import expected_one_of


@checks_arguments("engine")
def default_answers(
    name: str,
    instructions: Step | InputName,
    model: Step | InputName | None,
    *,
    engine: Engine | Endpoint | None = None,
    resources: Resources | None = None,
    expectations: Sequence[Expectation] = (),
    **fields: Any,
) -> Step:
    """Return the step "answers/<name>": the answers of the model that `model` exports to `instructions`.

    They are conversations, of which the user's texts are taken, or rows of MT-bench or AlpacaEval. `engine` is our JAX
    model in the step's process if None; with an Endpoint, `model` may be None: then the endpoint gets the messages.
    `fields` are those of AnswerInstructionsConfig, such as max_tokens=512; each enters the version.
    """
    config = AnswerInstructionsConfig(
        model_path=_model(model), instructions_path=output_path_of(instructions), engine=_engine(engine)
    )
    own = ("max_tokens", "temperature", "seed", "stop")
    return _step(f"answers/{name}", answer_instructions, _with(config, own, fields), resources, expectations)


@checks_arguments("engine")
def default_judge(
    name: str,
    answers: Step | InputName,
    baseline: Step | InputName,
    judge: Step | InputName | None,
    *,
    max_unjudged: float = 0.05,
    engine: Engine | Endpoint | None = None,
    resources: Resources | None = None,
    expectations: Sequence[Expectation] = (),
    **fields: Any,
) -> Step:
    """Return the step "judgements/<name>": how often the model that `judge` exports prefers `answers` to `baseline`.

    Both are outputs of `default_answers`, or conversations. Of all instructions the share `max_unjudged` at most may be
    without a verdict: a check. `engine` is the judge's; with an Endpoint and verdict="text", `judge` may be None.
    `fields` are those of CompareAnswersConfig, such as both_orders=True or verdict="text"; each enters the version.
    """
    config = CompareAnswersConfig(
        answers_path=output_path_of(answers),
        baseline_path=output_path_of(baseline),
        judge_path=_model(judge),
        engine=_engine(engine),
    )
    own = ("verdict", "prompt", "system_prompt", "both_orders", "seed", "max_tokens", "least_mass", "task")
    checks = [expect("unjudged_share", at_most=max_unjudged), *expectations]
    return _step(f"judgements/{name}", compare_answers, _with(config, own, fields), resources, checks)


@checks_arguments("engine")
def default_grades(
    name: str,
    answers: Step | InputName,
    judge: Step | InputName | None,
    *,
    max_ungraded: float = 0.05,
    engine: Engine | Endpoint | None = None,
    resources: Resources | None = None,
    expectations: Sequence[Expectation] = (),
    **fields: Any,
) -> Step:
    """Return the step "grades/<name>": grades from 1 to 10 that the model that `judge` exports gives to `answers`.

    The form of MT-bench: each turn is graded, with the reference answers of its instruction. Of all turns the share
    `max_ungraded` at most may be without a grade: a check. `fields` are those of GradeAnswersConfig, such as
    max_tokens=1024; each enters the version. Other arguments are those of `default_judge`.
    """
    config = GradeAnswersConfig(answers_path=output_path_of(answers), judge_path=_model(judge), engine=_engine(engine))
    own = ("prompt", "reference_prompt", "system_prompt", "max_tokens", "task")
    checks = [expect("ungraded_share", at_most=max_ungraded), *expectations]
    return _step(f"grades/{name}", grade_answers, _with(config, own, fields), resources, checks)


def _model(model: Step | InputName | None) -> InputName | None:
    """The folder of its export: "hf" of a step that trains, or what is given by its path."""
    if model is None:
        return None
    return output_path_of(model) if isinstance(model, InputName) else output_path_of(model, "hf")


def _engine(engine: Engine | Endpoint | None) -> Engine | Endpoint | None:
    if engine is not None:
        require_engine(engine)
    return in_version(engine)


def _with(config: Any, own: Sequence[str], fields: dict[str, Any]) -> Any:
    for name in fields:
        if name not in own:
            raise ConfigError(f"{type(config).__name__} has no field {name!r}, {expected_one_of(name, sorted(own))}")
    return dataclasses.replace(
        config, **{n: value if isinstance(value, VersionedValue) else versioned(value) for n, value in fields.items()}
    )


def _step(name: str, fn: Any, config: Any, resources: Resources | None, expectations: Sequence[Expectation]) -> Step:
    return Step(
        name=name,
        fn=fn,
        config=config,
        resources=resources or cpu(),
        extras=extras_on(resources, "train", "evaluate"),
        env=key_variables(config.engine),
        resumable=True,
        expectations=expectations,
    )

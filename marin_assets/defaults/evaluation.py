"""Create the steps that evaluate a trained model, or a model in training, and those that report: an experiment on one
page, models in one table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from marin_assets.defaults.contamination import is_from_elsewhere
from marin_assets.defaults.environment import extras_on
from marin_assets.inference.engine import Endpoint, Engine, EngineError, in_version, key_variables, require_engine
from marin_assets.stages.evaluate.lm_eval import HarnessOptions, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.lm_eval_config import in_version as options_in_version
from marin_assets.stages.evaluate.perplexity.measure_perplexity import MeasurePerplexityConfig, measure_perplexity
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.stages.report.compare_models import CompareModelsConfig, compare_models
from marin_assets.stages.report.models_by_tasks.suites.core import CORE
from marin_assets.stages.report.models_by_tasks.suites.olmes import OLMES
from marin_assets.stages.report.models_by_tasks.suites.score_suites import ScoreSuitesConfig, score_suites
from marin_assets.stages.report.models_by_tasks.suites.suite import Suite
from marin_assets.stages.report.report import ReportConfig, write_report
from marin_assets.stages.train.exports import FOLDER as EXPORTS
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation, expect
from marin_assets.step.marins_sentences import takes_marins_arguments
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import (
    KEY,
    InputName,
    output_path_of,
    unwrap_versioned_value,
    versioned,
)
from marin_resources.configuration.data_browser import browser_address
from marin_resources.hardware.resources import Resources, cpu


@checks_arguments("engine")
@takes_marins_arguments
def default_eval(
    step: Step | InputName,
    evals: Sequence[str | EvalTask] | None = None,
    *,
    held_out: Step | InputName | None = None,
    include_path: Step | InputName | str | None = None,
    mirror: Step | InputName | str | None = None,
    num_fewshot: int | None = None,
    resources: Resources | None = None,
    max_eval_instances: int | None = None,
    engine: Engine | Endpoint | None = None,
    options: HarnessOptions | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "evaluation/<its name>": lm-eval results of the model that `step` exports.

    `evals` are tasks of lm-eval, whose data are in the folder `mirror`, or in the YAML files below `include_path`; the
    held-out tasks if None. `CORE_TASKS` and others are suites of them. `num_fewshot` is that of tasks without a number
    of their own. `engine` computes: our JAX model if None, TORCH or VLLM, or the Endpoint of a server that has this
    very model; its kind is then in the name of the step.
    Raises ValueError for a hardcoded path.
    """
    of = step.step if isinstance(step, InputName) else step
    if of is None:
        raise ValueError(f"default_eval({step!r}) got a hardcoded path, expected a step that trains. Pass the step.")
    model = output_path_of(step) if isinstance(step, InputName) and step.name else output_path_of(of, "hf")
    config = _lm_eval(model, evals, held_out, include_path, mirror, num_fewshot, max_eval_instances, engine, options)
    return Step(
        name=f"evaluation/{of.name.removeprefix('checkpoints/')}{_on(engine)}",
        fn=evaluate_with_lm_eval,
        config=config,
        resources=resources or cpu(),
        extras=extras_on(resources, "train", "evaluate"),
        env=key_variables(engine),
        resumable=True,
        expectations=expectations,
    )


@checks_arguments("engine")
def default_checkpoint_evals(
    step: Step,
    partitions: Partitions,
    evals: Sequence[str | EvalTask] | None = None,
    *,
    held_out: Step | InputName | None = None,
    include_path: Step | InputName | str | None = None,
    mirror: Step | InputName | str | None = None,
    num_fewshot: int | None = None,
    resources: Resources | None = None,
    max_eval_instances: int | None = None,
    engine: Engine | Endpoint | None = None,
    options: HarnessOptions | None = None,
) -> Step:
    """Return the step "checkpoint_evaluation/<its name>": lm-eval results of each model that `step` exports while it
    trains, a partition for each.

    `partitions` is a dynamic set, such as dynamic("nano_checkpoints"), to which the sensor `new_checkpoints` adds
    "step-0000100". The config of `step` has `steps_per_hf_export`. The results do not wait for the training to end.
    Other arguments are those of `default_eval`.
    """
    model = output_path_of(step, f"{EXPORTS}/{KEY}").nonblocking()
    return Step(
        name=f"checkpoint_evaluation/{step.name.removeprefix('checkpoints/')}{_on(engine)}",
        fn=evaluate_with_lm_eval,
        config=_lm_eval(model, evals, held_out, include_path, mirror, num_fewshot, max_eval_instances, engine, options),
        resources=resources or cpu(),
        extras=extras_on(resources, "train", "evaluate"),
        env=key_variables(engine),
        resumable=True,
        partitions=partitions,
    )


@checks_arguments("endpoint")
def default_endpoint_eval(
    name: str,
    endpoint: Endpoint,
    evals: Sequence[str | EvalTask] | None = None,
    *,
    tokenizer: Step | InputName | None = None,
    held_out: Step | InputName | None = None,
    include_path: Step | InputName | str | None = None,
    mirror: Step | InputName | str | None = None,
    num_fewshot: int | None = None,
    resources: Resources | None = None,
    max_eval_instances: int | None = None,
    options: HarnessOptions | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "evaluation/<name>": lm-eval results of a model that no step here has made, behind an endpoint.

    The version has the name of the model, and not the address. Without `tokenizer`, the tasks generate text; with it,
    the folder of an export of that very model, whose weights are not read, tasks of all kinds run if the server scores
    given tokens. Other arguments are those of `default_eval`. Raises EngineError for what is no Endpoint.
    """
    if not isinstance(endpoint, Endpoint):
        raise EngineError(f"The endpoint is {endpoint!r}, expected an Endpoint. Pass Endpoint(url=…, model=…).")
    require_engine(endpoint)
    model = None if tokenizer is None else output_path_of(tokenizer)
    return Step(
        name=f"evaluation/{name}",
        fn=evaluate_with_lm_eval,
        config=_lm_eval(
            model, evals, held_out, include_path, mirror, num_fewshot, max_eval_instances, endpoint, options
        ),
        resources=resources or cpu(),
        extras=extras_on(resources, "train", "evaluate"),
        env=key_variables(endpoint),
        resumable=True,
        expectations=expectations,
    )


@checks_arguments()
def default_perplexity(
    step: Step | InputName,
    sets: Mapping[str, Step | InputName | str],
    *,
    layouts: Mapping[str, str] | None = None,
    max_texts: int | None = None,
    tokens: bool = True,
    resources: Resources | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "perplexity/<its name>": bits per byte of the model that `step` exports, by set and domain.

    `sets` are folders of texts by name, `layouts` how they are laid out ("paloma", "uncheatable"; "documents" if not
    named). `max_texts` limits those of each file. With `tokens`, the loss of every token is stored.
    """
    of = step.step if isinstance(step, InputName) else step
    if of is None:
        raise ValueError(f"default_perplexity({step!r}) got a hardcoded path, expected a step that trains.")
    return Step(
        name=f"perplexity/{of.name.removeprefix('checkpoints/')}",
        fn=measure_perplexity,
        config=MeasurePerplexityConfig(
            model_path=output_path_of(step) if isinstance(step, InputName) and step.name else output_path_of(of, "hf"),
            sets={name: path if isinstance(path, str) else output_path_of(path) for name, path in sets.items()},
            layouts=versioned(dict(layouts or {})),
            max_texts=versioned(max_texts),
            tokens=versioned(tokens),
        ),
        resources=resources or cpu(),
        extras=extras_on(resources, "train"),
        resumable=True,
        expectations=expectations,
    )


@checks_arguments()
def default_checkpoint_perplexity(
    step: Step,
    partitions: Partitions,
    sets: Mapping[str, Step | InputName | str],
    *,
    layouts: Mapping[str, str] | None = None,
    max_texts: int | None = None,
    tokens: bool = False,
    resources: Resources | None = None,
) -> Step:
    """Return the step "checkpoint_perplexity/<its name>": bits per byte of each model that `step` exports while it
    trains, a partition for each.

    `partitions` are those of `default_checkpoint_evals`, other arguments those of `default_perplexity`; the loss of
    every token is not stored, unless `tokens` is true.
    """
    exports = output_path_of(step, f"{EXPORTS}/{KEY}").nonblocking()
    of_export = default_perplexity(
        exports, sets, layouts=layouts, max_texts=max_texts, tokens=tokens, resources=resources
    )
    name = f"checkpoint_perplexity/{step.name.removeprefix('checkpoints/')}"
    return dataclasses.replace(of_export, name=name, partitions=partitions)


@checks_arguments()
def default_model_comparison(
    name: str,
    evaluations: Mapping[str, Step],
    *,
    baseline: str | None = None,
    metrics: Mapping[str, str] | None = None,
    title: str = "Models by tasks",
    may_be_worse: bool = True,
    browser: str | None = None,
    contaminations: Mapping[str, Step] | None = None,
) -> Step:
    """Return the step "comparisons/<name>": a table of models by tasks, of evaluations by model.

    The models are compared with `baseline`, the first one if None. With may_be_worse=False, a task at which a model is
    worse than it by more than noise is a failed check; models that do not differ fail it with a probability of 5 % at
    most, whatever the number of tasks. `browser` is the address of a data browser, to which the numbers
    of the table lead; None is that of MARIN_BROWSE_URL. `contaminations` are steps of `default_contamination` by model:
    the page has their counts. Raises SettingError for a browser that is no address.
    """
    return Step(
        name=f"comparisons/{name}",
        fn=compare_models,
        config=CompareModelsConfig(
            models={model: output_path_of(step) for model, step in evaluations.items()},
            baseline=versioned(baseline),
            metrics=versioned(dict(metrics or {})),
            title=versioned(title),
            browser=browser_address() if browser is None else browser,
            contaminations={model: output_path_of(step) for model, step in (contaminations or {}).items()},
            not_on_record=tuple(model for model, step in evaluations.items() if is_from_elsewhere(step)),
        ),
        extras=("evaluate",),
        expectations=() if may_be_worse else [expect("worse", at_most=0)],
    )


@checks_arguments()
def default_suite_scores(
    name: str,
    evaluations: Mapping[str, Step],
    *,
    suites: Sequence[Suite] = (CORE, OLMES),
    title: str = "Models by suites",
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "comparisons/<name>/suites": means over suites of tasks, of evaluations by model, one at least.

    CORE has the centered accuracies of CORE_TASKS, CORE_PLUS_MMLU those of CORE_TASKS_PLUS_MMLU too, and OLMES the
    better forms of OLMES_TASKS. A suite has a mean where the evaluation has all of its tasks at its shots.
    """
    return Step(
        name=f"comparisons/{name}/suites",
        fn=score_suites,
        config=ScoreSuitesConfig(
            models={model: output_path_of(step) for model, step in evaluations.items()},
            suites=versioned(tuple(suites)),
            title=versioned(title),
        ),
        extras=("evaluate",),
        expectations=expectations,
    )


@checks_arguments()
def default_report(name: str, steps: Mapping[str, Step], *, title: str) -> Step:
    """Return the step "report/<name>": a page about the steps by label, and whether their expectations held."""
    return Step(
        name=f"report/{name}",
        fn=write_report,
        config=ReportConfig(
            inputs={label: output_path_of(step) for label, step in steps.items()},
            title=versioned(title),
            expectations={label: list(step.expectations) for label, step in steps.items()},
        ),
        extras=("evaluate",),
        expectations=[expect("mismatches", at_most=0)],
    )


def _on(engine: Engine | Endpoint | None) -> str:
    """The end of the name of a step that an engine computes. Raises EngineError for what is no engine."""
    if engine is None:
        return ""
    require_engine(engine)
    return f"/{unwrap_versioned_value(engine).kind}"


def _path(of: Step | InputName | str | None) -> InputName | str | None:
    return of if of is None or isinstance(of, str) else output_path_of(of)


def _lm_eval(
    model: InputName | None,
    evals: Sequence[str | EvalTask] | None,
    held_out: Step | InputName | None,
    include_path: Step | InputName | str | None,
    mirror: Step | InputName | str | None,
    num_fewshot: int | None,
    max_eval_instances: int | None,
    engine: Engine | Endpoint | None,
    options: HarnessOptions | None,
) -> LmEvalConfig:
    config = LmEvalConfig(
        model_path=model,
        held_out_path=output_path_of(held_out) if held_out is not None else None,
        include_path=_path(include_path),
        mirror_path=_path(mirror),
        num_fewshot=versioned(num_fewshot),
        max_eval_instances=versioned(max_eval_instances),
        engine=in_version(engine),
        options=options_in_version(options),
    )
    return config if evals is None else dataclasses.replace(config, tasks=versioned(tuple(evals)))

"""Create the steps that report: an experiment on one page, models in one table."""

from __future__ import annotations

from collections.abc import Mapping

from marin_assets.stages.report.compare_models import CompareModelsConfig, compare_models
from marin_assets.stages.report.report import ReportConfig, write_report
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import expect
from marin_assets.step.step import Step
from marin_assets.step.values import output_path_of, versioned


@checks_arguments()
def default_model_comparison(
    name: str,
    evaluations: Mapping[str, Step],
    *,
    baseline: str | None = None,
    metrics: Mapping[str, str] | None = None,
    title: str = "Models by tasks",
    may_be_worse: bool = True,
) -> Step:
    """Return the step "comparisons/<name>": a table of models by tasks, of evaluations by model.

    The models are compared with `baseline`, the first one if None. With may_be_worse=False, a task at which a model is
    worse than it by more than noise is a failed check.
    """
    return Step(
        name=f"comparisons/{name}",
        fn=compare_models,
        config=CompareModelsConfig(
            models={model: output_path_of(step) for model, step in evaluations.items()},
            baseline=versioned(baseline),
            metrics=versioned(dict(metrics or {})),
            title=versioned(title),
        ),
        expectations=() if may_be_worse else [expect("worse", at_most=0)],
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

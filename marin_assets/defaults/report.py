"""Create the step that reports an experiment on one page."""

from __future__ import annotations

from collections.abc import Mapping

from marin_assets.stages.report.report import ReportConfig, write_report
from marin_assets.step.expectation import expect
from marin_assets.step.step import Step
from marin_assets.step.values import output_path_of, versioned


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

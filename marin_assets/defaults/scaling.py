"""Create the steps that fit scaling laws to tables of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.scaling.fit_config import FitScalingLawConfig, Forecast
from marin_assets.stages.scaling.fit_scaling_law import fit_scaling_law
from marin_assets.stages.scaling.runs import FLOPS_PER_PARAMETER_TOKEN
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, output_path_of, versioned


@checks_arguments()
def default_scaling_law(
    name: str,
    runs: Step | InputName | str,
    *,
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, Any] | None = None,
    held_out: Sequence[str] = (),
    budgets: Sequence[float] = (),
    forecasts: Sequence[Forecast] = (),
    delta: float = 1e-3,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.8,
    flops_per_parameter_token: float = FLOPS_PER_PARAMETER_TOKEN,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "scaling_laws/<name>": the law of a loss by parameters and tokens, fitted to a table of runs.

    `runs` is a step that writes the table, or a file or folder: rows with label, params, tokens, flops and loss, or
    with the names that `columns` has for them. `where` selects rows by values of columns.
    """
    return Step(
        name=f"scaling_laws/{name}",
        fn=fit_scaling_law,
        config=FitScalingLawConfig(
            runs_path=runs if isinstance(runs, str) else output_path_of(runs),
            columns=versioned(dict(columns or {})),
            where=versioned(dict(where or {})),
            held_out=versioned(tuple(held_out)),
            budgets=versioned(tuple(map(float, budgets))),
            forecasts=versioned(tuple(forecasts)),
            delta=versioned(delta),
            resamples=versioned(resamples),
            seed=versioned(seed),
            confidence=versioned(confidence),
            flops_per_parameter_token=versioned(flops_per_parameter_token),
        ),
        extras=("evaluate",),  # scipy, matplotlib
        expectations=expectations,
    )

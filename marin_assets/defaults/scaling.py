"""Create the steps that fit scaling laws to tables of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marin_assets.defaults.scaling_runs import default_scaling_runs
from marin_assets.defaults.sweep import GridPoint
from marin_assets.stages.scaling.digest import digest_of
from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.fit_config import FitScalingLawConfig, Forecast
from marin_assets.stages.scaling.fit_ladder import fit_ladder
from marin_assets.stages.scaling.fit_scaling_law import fit_scaling_law
from marin_assets.stages.scaling.ladder.ladder_config import FitLadderConfig
from marin_assets.stages.scaling.runs import FLOPS_PER_PARAMETER_TOKEN
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, output_path_of, versioned


@checks_arguments()
def default_scaling_law(
    name: str,
    runs: Step | InputName | str | Mapping[str, Step | GridPoint],
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
    with the names that `columns` has for them; the content of one on this machine is in the version. Trainings by
    label, such as those of `isoflop`, are tabulated by the step "runs/<name>" (default_scaling_runs). `where` selects
    rows by values of columns. The fit does not read the runs of `held_out`, and forecasts their loss beside that of
    `forecasts`. `budgets` are FLOPs to state the best model of.
    """
    path, digest = _table(default_scaling_runs(name, runs) if isinstance(runs, Mapping) else runs)
    return Step(
        name=f"scaling_laws/{name}",
        fn=fit_scaling_law,
        config=FitScalingLawConfig(
            runs_path=path,
            runs_digest=versioned(digest),
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


@checks_arguments()
def default_ladder(
    name: str,
    runs: Step | InputName | str,
    *,
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, Any] | None = None,
    targets: Sequence[str] = (),
    forecasts: Sequence[Forecast] = (),
    burn_in: float = 0.1,
    delta: float = 1e-3,
    score_delta: float = 0.01,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.8,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "scaling_laws/<name>": the score at a task of large models, from checkpoints of small ones.

    `runs` is a step that writes the table, or a file or folder: rows with label, params, tokens, loss (of the task) and
    score (0 to 1), or with the names that `columns` has for them. The fit does not read the runs of `targets`, and
    forecasts their score beside that of `forecasts`.
    """
    path, digest = _table(runs)
    return Step(
        name=f"scaling_laws/{name}",
        fn=fit_ladder,
        config=FitLadderConfig(
            runs_path=path,
            runs_digest=versioned(digest),
            columns=versioned(dict(columns or {})),
            where=versioned(dict(where or {})),
            targets=versioned(tuple(targets)),
            forecasts=versioned(tuple(forecasts)),
            burn_in=versioned(burn_in),
            delta=versioned(delta),
            score_delta=versioned(score_delta),
            resamples=versioned(resamples),
            seed=versioned(seed),
            confidence=versioned(confidence),
        ),
        extras=("evaluate",),  # matplotlib
        expectations=expectations,
    )


def _table(runs: Step | InputName | str) -> tuple[InputName | str, str | None]:
    """The path of the table, and its digest where no step makes it and it is on this machine."""
    if not isinstance(runs, str):
        return output_path_of(runs), None
    if "://" in runs:
        return runs, None
    path = str(Path(runs).absolute())
    try:
        return path, digest_of(path)
    except FileNotFoundError as error:
        raise ScalingError(
            f"runs is {runs!r}, and nothing exists at {path!r}. Pass the path of a table, or the step that writes one."
        ) from error

"""The config of a ladder, and what is wrong with one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.fit_config import Forecast, check_columns, check_numbers, require_positive
from marin_assets.stages.scaling.runs import COLUMNS, SCORE
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources


@dataclass(frozen=True, kw_only=True)
class FitLadderConfig:
    runs_path: str
    """A table of checkpoints: rows of a run have one label, and the one of the most tokens is the finished run."""
    output_path: str = THIS_OUTPUT_PATH
    runs_digest: str | None = versioned(None)
    """Digest of a table on this machine that no step makes."""
    columns: dict[str, str] = field(default_factory=lambda: versioned({}))
    """Column of the contract -> its name in the table: {"loss": "arc_easy_bpb", "score": "arc_easy_acc"}."""
    where: dict[str, Any] = field(default_factory=lambda: versioned({}))
    """Column -> value of the rows to take. All rows if empty."""
    targets: tuple[str, ...] = versioned(())
    """Labels of runs that the fit does not read, and whose score it forecasts."""
    forecasts: tuple[Forecast, ...] = versioned(())
    """Runs that do not exist yet, by params and tokens."""
    burn_in: float = versioned(0.1)
    """Share of a run's tokens: checkpoints before have a loss that the curve does not explain."""
    delta: float = versioned(1e-3)
    """Log residual of the loss up to which the objective is quadratic (Huber)."""
    score_delta: float = versioned(0.01)
    """Residual of the score up to which it is: one point."""
    resamples: int = versioned(1000)
    """Refits to resampled runs, for the intervals."""
    seed: int = versioned(0)
    confidence: float = versioned(0.8)
    """Share of the resamples that an interval holds."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, check_ladder_config, name)


def check_ladder_config(config: FitLadderConfig) -> None:
    """Raise ScalingError for a value that no ladder can have."""
    check_columns(config.columns, (*COLUMNS, SCORE))
    check_numbers(config)
    require_positive(config.score_delta, "score_delta")
    if not 0 <= config.burn_in < 1:
        raise ScalingError(f"burn_in is {config.burn_in!r}, expected a share from 0 to below 1, such as 0.1.")
    for forecast in config.forecasts:
        if forecast.params is None or forecast.tokens is None or forecast.flops is not None:
            raise ScalingError(
                f"A forecast of a ladder is {forecast!r}, expected params and tokens alone: Forecast(params=7e9, "
                "tokens=4e12)."
            )
        require_positive(forecast.params, "params of a forecast")
        require_positive(forecast.tokens, "tokens of a forecast")

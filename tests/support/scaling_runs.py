"""Tables of runs whose law is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from marin_assets.stages.scaling.fit_config import FitScalingLawConfig
from marin_assets.stages.scaling.fit_scaling_law import fit_scaling_law
from marin_assets.stages.scaling.law.law import Law
from marin_assets.stages.scaling.tables import as_csv
from marin_assets.step.values import unwrap_versioned_value

CHINCHILLA = Law(1.69, 406.4, 410.7, 0.34, 0.28)


def isoflop_runs(law: Law = CHINCHILLA, noise: float = 0.0, width: float = 8.0, drift: float = 1.0) -> dict[str, Any]:
    """Columns of 5 budgets with 7 sizes each, from 1/width to width times the best; `drift`: of the centre, at 1e20."""
    columns: dict[str, list[Any]] = {"label": [], "params": [], "tokens": [], "flops": [], "loss": []}
    random = np.random.default_rng(7)
    for number, flops in enumerate(np.geomspace(1e18, 1e20, 5)):
        for factor in np.geomspace(1 / width, width, 7):
            params = float(law.best_params(flops, 6.0)) * factor / drift ** (number / 4)
            tokens = flops / 6 / params
            loss = float(law.loss(params, tokens)) * float(np.exp(noise * random.normal()))
            row = (f"{flops:.1e}, x {factor:.2f}", params, tokens, flops, loss)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return columns


def rows_of(columns: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def write_table(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_bytes(as_csv(list(rows[0]), rows))
    return str(path)


def fit_table(table: str | list[dict[str, Any]], output: Path, **fields: Any) -> dict[str, Any]:
    """The result of a fit to a table at a path, or to rows."""
    path = table if isinstance(table, str) else write_table(output.with_name(f"{output.name}.csv"), table)
    given = {"resamples": 50, "output_path": str(output), **fields}
    return fit_scaling_law(unwrap_versioned_value(FitScalingLawConfig(runs_path=path, **given)))

"""Fits of tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scaling_runs import fit_table

Fit = Callable[..., dict[str, Any]]


@pytest.fixture
def fitted(tmp_path: Path) -> Fit:
    """The result of a fit to a table at a path, or to rows; its output is the folder `output` of the test's."""

    def fit(table: str | list[dict[str, Any]], output: str = "fit", **fields: Any) -> dict[str, Any]:
        return fit_table(table, tmp_path / output, **fields)

    return fit

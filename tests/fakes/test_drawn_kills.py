"""A stage that a kill harms is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn_kills import require_same_bytes_after_kills, stage_runs


def test_a_stage_that_takes_what_exists_for_complete_is_noticed(tmp_path: Path) -> None:
    with stage_runs() as runs:
        fields = {"is_careful": True}
        require_same_bytes_after_kills(runs, "careless_stage:careless", "CarelessConfig", fields, tmp_path / "careful")
        fields = {"is_careful": False}
        with pytest.raises(AssertionError):
            require_same_bytes_after_kills(runs, "careless_stage:careless", "CarelessConfig", fields, tmp_path / "not")


def test_a_stage_that_raises_is_no_kill(tmp_path: Path) -> None:
    with stage_runs() as runs, pytest.raises(AssertionError, match="is_careful"):
        runs.run("careless_stage:careless", "CarelessConfig", {"output_path": str(tmp_path)})

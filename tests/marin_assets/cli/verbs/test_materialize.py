"""`marin materialize`: the selected steps of the code location, and never another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from location import Location

Marin = Callable[..., tuple[int, str, str]]


def test_complete_outputs_are_reused(made: Location, marin: Marin, dagster_home: Path) -> None:
    code, _, err = marin("materialize", "toy/model", "toy/tokens")
    assert (code, "0 computed, 2 reused, 0 failed" in err) == (0, True), err


def test_a_step_alone_needs_its_inputs_and_with_a_plus_it_has_them(
    location: Location, marin: Marin, dagster_home: Path
) -> None:
    code, _, err = marin("materialize", "key:toy/tokens")
    assert code == 1
    assert "Step 'toy/tokens' needs 'toy/data'" in err
    code, out, _ = marin("materialize", "+toy/tokens", "--dry-run")
    assert code == 0
    assert out.endswith("2 to run\n")


@pytest.mark.parametrize("selection", [["*"], ["--experiment", ""]])
def test_all_steps_are_selected_on_demand_only(location: Location, marin: Marin, selection: list[str]) -> None:
    words = [word or location.name for word in selection]
    code, out, _ = marin("materialize", *words, "--dry-run")
    assert (code, out.splitlines()[-1]) == (0, "4 to run")

"""The steps of scaling laws: their versions, and their run as assets."""

from __future__ import annotations

from pathlib import Path

from scaling_runs import isoflop_runs, rows_of, write_table

from marin_assets import InputName, Step
from marin_assets.defaults import Forecast, default_ladder, default_scaling_law
from marin_assets.step.graph import build_graph


def version_of(step: Step) -> str:
    return build_graph([step])[step].version.hash


def test_the_content_of_a_table_on_this_machine_is_in_the_version_and_its_place_is_not(tmp_path: Path) -> None:
    rows = rows_of(isoflop_runs())
    for folder in ("one", "other", "changed"):
        (tmp_path / folder).mkdir()
        write_table(tmp_path / folder / "runs.csv", rows if folder != "changed" else rows[:-1])
    one, other, changed = (
        version_of(default_scaling_law("x", str(tmp_path / folder / "runs.csv")))
        for folder in ("one", "other", "changed")
    )
    assert one == other != changed
    ladders = [version_of(default_ladder("x", str(tmp_path / folder))) for folder in ("one", "changed")]
    assert ladders[0] != ladders[1]


def test_what_changes_the_fit_changes_its_version(tmp_path: Path) -> None:
    runs = InputName.hardcoded("tables/runs")
    changes = (
        *({"seed": 1}, {"delta": 0.01}, {"resamples": 100}, {"confidence": 0.9}, {"where": {"final": 1}}),
        *({"columns": {"loss": "c4"}}, {"held_out": ["7B"]}, {"budgets": [1e21]}, {"flops_per_parameter_token": 8.0}),
        {"forecasts": [Forecast(flops=1e22)]},
    )
    versions = [version_of(default_scaling_law("x", runs, **change)) for change in ({}, *changes)]  # type: ignore[arg-type]
    assert len(set(versions)) == len(versions)
    of_ladders = ({}, {"burn_in": 0.2}, {"score_delta": 0.1}, {"targets": ["7B"]})
    versions = [version_of(default_ladder("x", runs, **change)) for change in of_ladders]  # type: ignore[arg-type]
    assert len(set(versions)) == len(versions)

"""The golden table: what marin-core's Executor computed, and what these steps are called forever."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, mirrored, output_path_of, this_output_path, versioned

TABLE = json.loads((Path(__file__).parent / "golden_versions.json").read_text())["steps"]
WORDS = SimpleNamespace(
    Step=Step,
    versioned=versioned,
    output_path_of=output_path_of,
    this_output_path=this_output_path,
    hardcoded=InputName.hardcoded,
    mirrored=mirrored,
)


@pytest.fixture(scope="module")
def paths() -> dict[str, str]:
    sides = Path(__file__).parents[2] / "benchmarks" / "sides"
    steps = runpy.run_path(str(sides / "step_table.py"))["build"](TABLE, WORDS)
    graph = build_graph(steps.values())
    return {id_: graph[step].version.path for id_, step in steps.items()}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["id"])
def test_nothing_may_ever_change_the_path_of_this_step(row: dict[str, object], paths: dict[str, str]) -> None:
    assert paths[str(row["id"])] == row["path"]


def test_the_table_is_whole() -> None:
    assert len(TABLE) == 15

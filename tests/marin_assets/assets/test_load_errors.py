"""An experiment that is left out is seen in Dagster, and fails a validation of the code location."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
from running import ROOT, run_job
from toy_steps import toy

from marin_assets.assets.assemble import assemble
from marin_assets.catalog.experiments_folder import Experiments

SENTENCE = "Experiment 'mine' is left out: ModuleNotFoundError: No module named 'lxlm'"
LOCATION = f"""
from marin_assets.assets.assemble import assemble
from marin_assets.catalog.experiments_folder import Experiments
defs = assemble(Experiments({{}}, {{"mine": {SENTENCE!r}}}))
"""


def left_out(**sentences: str) -> dg.Definitions:
    return assemble(Experiments({"toys": (toy("a"),)}, sentences))


def test_it_is_an_asset_with_the_reason_that_no_run_computes(prefix: Path, instance: dg.DagsterInstance) -> None:
    specs = {spec.key.to_user_string(): spec for spec in left_out(mine=SENTENCE).resolve_all_asset_specs()}
    assert specs["left_out/mine"].description == SENTENCE
    assert specs["left_out/mine"].group_name == "left_out"
    graph = left_out(mine=SENTENCE).resolve_asset_graph()
    assert not graph.get(dg.AssetKey(["left_out", "mine"])).is_executable
    assert len(left_out().resolve_all_asset_specs()) == 1


def test_its_check_fails_with_the_reason(prefix: Path, instance: dg.DagsterInstance) -> None:
    definitions = left_out(mine=SENTENCE)
    checks = dg.AssetSelection.checks_for_assets(dg.AssetKey(["left_out", "mine"]))
    job = dg.define_asset_job("look", checks)
    result = run_job(dg.Definitions.merge(definitions, dg.Definitions(jobs=[job])), "look", instance)
    [evaluation] = result.get_asset_check_evaluations()
    assert not evaluation.passed
    assert evaluation.description == SENTENCE


def test_a_validation_fails_and_the_location_loads_all_the_same(tmp_path: Path, dagster_home: Path) -> None:
    (tmp_path / "location.py").write_text(LOCATION)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    validated = run("-m", "dagster", "definitions", "validate", "-m", "location", "-d", str(tmp_path))
    assert validated.returncode == 1
    assert SENTENCE in validated.stdout + validated.stderr
    loaded = run("-c", "import location; print(*location.defs.resolve_all_asset_specs())")
    assert loaded.returncode == 0
    assert "left_out" in loaded.stdout

"""In a shell of the checkout Dagster's commands need no -m: some read pyproject.toml, the others a variable."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from running import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / ".venv").exists(), reason="`make init` has not created .venv")


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("asset list --select 'key:\"two_steps/*\"'", "two_steps/data\ntwo_steps/stats"),
        *(
            pytest.param(command, printed, marks=pytest.mark.long)
            for command, printed in (
                ("asset materialize --select two_steps/data", "two_steps/data: computing"),
                ("definitions validate", "Validation successful for code location marin."),
            )
        ),
    ],
)
def test_a_command_of_dagster_needs_no_module(tmp_path: Path, command: str, printed: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DAGSTER")}
    environ |= {"DAGSTER_HOME": str(tmp_path / "home"), "MARIN_PREFIX": str(tmp_path / "outputs")}
    (tmp_path / "home").mkdir()
    shell = f"source .activate && dagster {command}"
    ended = subprocess.run(["bash", "-c", shell], cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert printed in ended.stdout + ended.stderr

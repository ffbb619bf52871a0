"""In a fresh checkout the modules of tests are rewritten before the processes that collect them start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rewritten_once import MANY

SUPPORT = Path(__file__).parents[1] / "support"
CONFTEST = """
from pathlib import Path
import rewritten_once

def pytest_configure(config):
    print(rewritten_once.rewrite_once(config, Path(__file__).parent), "rewritten", flush=True)
"""


@pytest.mark.parametrize(("processes", "rewritten"), [(2, MANY + 1), (0, 0)])
def test_a_session_of_several_processes_rewrites_each_module_once(
    tmp_path: Path, processes: int, rewritten: int
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for number in range(MANY + 1):
        (tmp_path / f"test_{number}.py").write_text(
            "def test_it():\n    left, right = 1, 2\n    assert left == right\n"
        )
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ours.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-n", str(processes), "--import-mode=importlib", "-s"]
    for expected in (rewritten, 0):
        ended = subprocess.run(
            [*command, str(tmp_path)],
            cwd=tmp_path,
            env={**ours, "PYTHONPATH": str(SUPPORT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert f"{expected} rewritten\n" in ended.stdout, ended.stdout
        assert f"{MANY + 1} failed" in ended.stdout
        assert "assert 1 == 2" in ended.stdout

"""A token that lies around, of another cluster or of Ray's own making, is nothing to the Ray that a run starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import start_script

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from toy_steps import toy
from marin_assets import executor_main
executor_main([toy("a")])
"""


@pytest.mark.long
def test_a_run_without_a_cluster_takes_no_notice_of_it(prefix: Path, dagster_home: Path, tmp_path: Path) -> None:
    script = tmp_path / "experiment.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1] / "support")))
    stray = tmp_path / "home" / ".ray" / "auth_token"
    stray.parent.mkdir(parents=True)
    stray.write_text("of another cluster")
    env = {"HOME": str(tmp_path / "home"), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "of a third one"}
    output, _ = (run := start_script(script, env=env)).communicate(timeout=480)
    assert run.returncode == 0, output
    assert "1 computed, 0 reused, 0 failed" in output
    assert stray.read_text() == "of another cluster"

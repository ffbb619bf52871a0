"""The README's first command at its full size: every check holds, and the second time nothing is computed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT


@pytest.mark.long
def test_it_ends_with_an_evaluated_model_and_is_then_done(prefix: Path, dagster_home: Path) -> None:
    command = [sys.executable, "-m", "marin_assets.experiments.quickstart"]
    first = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    assert "22 computed, 0 reused, 0 failed" in first.stderr
    report = Path(first.stdout.strip().splitlines()[-1].removeprefix("report: "))
    assert report.read_text().startswith("<!doctype html>")
    [scores] = prefix.glob("evaluation/quickstart-*/.executor_info")
    result = json.loads(scores.read_text())["result"]
    assert result["questions"] >= 500
    assert result["acc_mutual_info_lower95"] > 0.35
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode == 0, second.stderr
    assert "0 computed, 22 reused, 0 failed" in second.stderr

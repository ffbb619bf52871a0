"""The README's first command at its full size: every check holds, and the second time nothing is computed."""

import json
from pathlib import Path

import pytest
from quickstart_runs import FullRun, run_full


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_it_ends_with_an_evaluated_model_and_is_then_done(full_quickstart: FullRun) -> None:
    assert "22 computed, 0 reused, 0 failed" in full_quickstart.stderr
    report = Path(full_quickstart.stdout.strip().splitlines()[-1].removeprefix("report: "))
    assert report.read_text().startswith("<!doctype html>")
    [scores] = full_quickstart.prefix.glob("evaluation/quickstart-*/.executor_info")
    result = json.loads(scores.read_text())["result"]
    assert result["questions"] >= 500
    assert result["acc_mutual_info_lower95"] > 0.35
    _, err = run_full(full_quickstart.env)
    assert "0 computed, 22 reused, 0 failed" in err

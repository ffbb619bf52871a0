"""The options of a script in the form that Marin's users type."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from marin_assets.run.marins_options import in_our_form, run_only_patterns
from marin_assets.run.options import OptionError

SCRIPT = Path(__file__).parents[3] / "marin_assets/experiments/two_steps.py"


@pytest.mark.parametrize(
    ("marins", "ours"),
    [
        (["--dry_run", "True"], ["--dry-run"]),
        (["--dry_run=true", "--prefix", "x"], ["--dry-run", "--prefix", "x"]),
        (["--dry_run", "False"], []),
        (["--dry-run", "--max_concurrent", "2"], ["--dry-run", "--max_concurrent", "2"]),
        (["--force_run_failed", "True", "--run_only", '["a"]'], ["--run_only", '["a"]']),
        (["--force_run_failed"], []),
    ],
)
def test_marins_form_is_ours(marins: list[str], ours: list[str]) -> None:
    assert in_our_form(marins) == ours


@pytest.mark.parametrize(
    ("marins", "sentence"),
    [
        (["--dry_run=maybe"], "--dry_run got 'maybe', expected True or False"),
        (["--force_run_failed", "False"], "--no-force-run-failed"),
        (["--executor_info_base_path", "x"], "below the prefix, in experiments/"),
        (["--config_path=x.yaml"], "no file of options"),
    ],
)
def test_what_has_no_place_here_is_a_sentence(marins: list[str], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        in_our_form(marins)


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("tokenized", ["tokenized"]),
        ('["tokenized/.*", "raw"]', ["tokenized/.*", "raw"]),
        ("['raw']", ["raw"]),
        ("[raw, tokenized]", ["raw", "tokenized"]),
        ("[rt]o[kw]", ["[rt]o[kw]"]),
    ],
)
def test_a_list_of_patterns_is_each_of_them(text: str, patterns: list[str]) -> None:
    assert run_only_patterns(text) == patterns


def test_a_script_takes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    marins = ["--prefix", str(tmp_path), "--dry_run", "True", "--run_only", '["data"]', "--force_run_failed", "True"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *marins])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    printed = capsys.readouterr().out
    assert "two_steps/data-" in printed
    assert "two_steps/stats-" not in printed
    assert "1 to run" in printed

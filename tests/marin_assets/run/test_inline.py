"""`marin run --inline`: one step's function in this process, with its terminal, and published like any other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = """
from dataclasses import dataclass
from marin_assets import Step, THIS_OUTPUT_PATH, executor_main

@dataclass(frozen=True, kw_only=True)
class Config:
    rate: float = 0.5
    output_path: str = THIS_OUTPUT_PATH

def look(config):
    breakpoint()
    open(f"{config.output_path}/made.txt", "w").close()
    return {"rate": config.rate}

def fail(config):
    raise ValueError("no such rate")

if __name__ == "__main__":
    executor_main([Step(name="a/looked", fn=look, config=Config()), Step(name="a/failed", fn=fail, config=Config())])
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def marin(tmp_path: Path, dagster_home: Path, disk_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command line in a process of its own, with something typed into its terminal."""
    monkeypatch.setenv("MARIN_PREFIX", disk_prefix)
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)  # a Ray that another test has started here sets it
    (tmp_path / "script.py").write_text(SCRIPT)

    def run(*words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "marin_assets.cli", *words]
        return subprocess.run(command, input=typed, capture_output=True, text=True, cwd=tmp_path, timeout=120)

    return run


def test_a_function_is_looked_at_in_a_debugger_and_its_output_is_published(marin: Run) -> None:
    done = marin("run", "script.py", "a/looked", "--inline", typed="p config.rate + 1\ncontinue\n")
    assert done.returncode == 0, done.stderr
    assert "(Pdb) 1.5" in done.stdout
    shown = marin("status", "a/looked", "--script", "script.py")
    assert shown.stdout.startswith("complete  a/looked")
    again = marin("run", "script.py", "a/looked", "--inline")
    assert again.returncode == 1
    assert "'a/looked' is not computed: complete. Pass --force to compute it again." in again.stderr


@pytest.mark.long
def test_a_failure_is_recorded(marin: Run) -> None:
    done = marin("run", "script.py", "a/failed", "--inline")
    assert done.returncode == 1
    assert "Step 'a/failed' failed: ValueError: no such rate" in done.stderr
    assert "failed    a/failed" in marin("status", "a/failed", "--script", "script.py").stdout


def test_it_takes_one_output(marin: Run) -> None:
    done = marin("run", "script.py", "--inline")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--inline takes one output, and 2 are selected" in done.stderr

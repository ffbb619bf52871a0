"""A process that crashes leaves a note of how and where; one that is killed, or that ends well, leaves none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from marin_resources.ray_tpu.crash_note import take_crash

CRASHING = """
import ctypes, os, signal
from marin_resources.ray_tpu.crash_note import crash_noted

def crash():
    {how}

with crash_noted("a test") as steps:
    for step in {steps}:
        steps.stepped(step)
    crash()
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def crash(folder: Path, how: str, steps: str = "()") -> subprocess.CompletedProcess[str]:
    (folder / "code.py").write_text(CRASHING.format(how=how, steps=steps))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(folder / "code.py")]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("how", "steps", "phrase"),
    [
        ("os.abort()", "()", "signal 6 (SIGABRT) in crash, code.py line 6"),
        ("os._exit(7)", "(1, 2, 30)", "os._exit(7) in crash, code.py line 6, after step 30"),
        ("os.kill(os.getpid(), signal.SIGBUS)", "(30, 4)", "signal 7 (SIGBUS) in crash, code.py line 6, after step 4"),
    ],
)
def test_a_crash_is_noted_with_its_way_its_line_and_its_step(tmp_path: Path, how: str, steps: str, phrase: str) -> None:
    assert crash(tmp_path, how, steps).returncode != 0
    noted = take_crash("a test")
    assert noted is not None
    assert noted.phrase == f"its process died by {phrase}"
    assert 'code.py", line' in noted.text
    assert take_crash("a test") is None, "it is taken once"


@pytest.mark.parametrize(
    "how", ["os.kill(os.getpid(), signal.SIGKILL)", "os.fork() or os._exit(7)", "raise SystemExit"]
)
def test_what_is_killed_forks_or_ends_leaves_no_crash(tmp_path: Path, how: str) -> None:
    crash(tmp_path, how)
    assert take_crash("a test") is None


def test_a_folder_of_another_kind_in_its_place_stops_no_function(tmp_path: Path) -> None:
    (tmp_path / f"marin-crashes-{os.geteuid()}").write_text("")
    ended = crash(tmp_path, "print('it runs')")
    assert ended.stdout == "it runs\n"
    assert "a crash of this process would not be noted" in ended.stderr

"""`marin run --force`: a complete output is computed again, the old one moved aside, and its readers drift."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from marin_resources.storage.files import names_in, read_bytes, stored_files
from marin_resources.storage.paths import join

SCRIPT = """
import os
from dataclasses import dataclass
from marin_assets import Step, THIS_OUTPUT_PATH, executor_main, output_path_of
from marin_resources.storage.files import exists, write_bytes

@dataclass(frozen=True, kw_only=True)
class Config:
    text_path: str = ""
    output_path: str = THIS_OUTPUT_PATH

def make(config):
    path = f"{config.output_path}/made.txt"
    if exists(path):
        raise ValueError("the folder is not empty")
    write_bytes(path, os.environ["TEXT"].encode())

raw = Step(name="a/raw", fn=make, config=Config(), resumable=True, env=("TEXT",))
last = Step(name="a/last", fn=make, config=Config(text_path=output_path_of(raw)), env=("TEXT",))

if __name__ == "__main__":
    executor_main([last])
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def marin(tmp_path: Path, dagster_home: Path, disk_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("MARIN_PREFIX", disk_prefix)
    monkeypatch.setenv("TEXT", "one")
    (tmp_path / "script.py").write_text(SCRIPT)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "marin_assets.cli", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=240)

    return run


def folder(prefix: str) -> str:
    [name] = names_in(join(prefix, "a"), "raw-")
    return join(prefix, "a", name)


@pytest.mark.long
def test_a_forced_step_is_computed_again_and_what_reads_it_drifts(
    marin: Run, disk_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert marin("run", "script.py").returncode == 0
    monkeypatch.setenv("TEXT", "two")
    planned = marin("plan", "script.py", "--force", "a/raw")
    assert "forced" in planned.stdout
    assert "its input 'a/raw' is computed again, so it may drift" in planned.stdout
    done = marin("run", "script.py", "--force", "a/raw")
    assert done.returncode == 0, done.stderr
    assert "1 computed, 1 reused, 0 failed" in done.stderr
    assert "a/last: since it was computed, the input 'a/raw' changed" in done.stderr
    path = folder(disk_prefix)
    assert read_bytes(join(path, "made.txt")) == b"two"
    aside = [file.path for file in stored_files(join(path, ".marin/aside"), hidden=True)]
    assert [read_bytes(file) for file in aside if file.endswith("made.txt")] == [b"one"]
    assert len(names_in(join(disk_prefix, ".marin/history/a", path.rpartition("/")[2]))) == 1
    assert "since it was computed, the input 'a/raw' changed" in marin("plan", "script.py").stdout

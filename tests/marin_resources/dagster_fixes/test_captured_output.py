from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CAPTURE = """
import sys
from dagster._core.execution.compute_logs import mirror_stream_to_file
from marin_resources.dagster_fixes.captured_output import threads_for_tails

with threads_for_tails():
    captured = mirror_stream_to_file(sys.stderr, sys.argv[1])
    captured.__enter__()
print("x" * int(sys.argv[2]) + "the last line", file=sys.stderr)
captured.__exit__(None, None, None)
print("after it", file=sys.stderr)
"""


@pytest.fixture
def slow_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command `tail` begins late, as on a busy machine."""
    command = tmp_path / "bin/tail"
    command.parent.mkdir()
    command.write_text('#!/bin/sh\nsleep 5\nexec /usr/bin/tail "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(command.parent), os.environ["PATH"]]))


@pytest.mark.usefixtures("slow_tail")
@pytest.mark.parametrize("characters", [0, 1_000_000])
def test_the_last_line_of_a_run_reaches_the_terminal_and_the_file(tmp_path: Path, characters: int) -> None:
    """With Dagster's own `tail` it is lost whenever the run ends sooner than `tail` reads."""
    file = tmp_path / "captured.err"
    command = [sys.executable, "-c", CAPTURE, str(file), str(characters)]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True, timeout=120)
    assert ended.stderr == "x" * characters + "the last line\nafter it\n"
    assert file.read_text() == "x" * characters + "the last line\n"


def test_a_run_goes_on_when_nobody_reads_its_terminal_any_more(tmp_path: Path) -> None:
    file = tmp_path / "captured.err"
    command = [
        sys.executable,
        "-c",
        CAPTURE.replace('print("after it"', 'open(sys.argv[1] + ".ended", "w"); print("")#'),
    ]
    run = subprocess.Popen([*command, str(file), "1000000"], stderr=subprocess.PIPE)
    assert run.stderr is not None
    run.stderr.close()
    run.communicate(timeout=120)
    assert file.read_text().endswith("the last line\n")
    assert file.with_suffix(".err.ended").exists()

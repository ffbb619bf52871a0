from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from marin_resources.ray_tpu.log.attempt_log import LogFollower
from marin_resources.ray_tpu.log.spool import spool_of
from marin_resources.storage.files import read_from, sizes_below
from marin_resources.storage.paths import join

PRINTER = """
import logging, os, subprocess, sys
from marin_resources.ray_tpu.log.attempt_log import VARIABLE, redirect_output
print("before")
with redirect_output(sys.argv[1]):
    print("from print")
    print("to stderr", file=sys.stderr)
    os.write(1, b"from C\\n")
    subprocess.run(["sh", "-c", "echo from a child; echo child error >&2"], check=True)
    logging.getLogger("stage").info("from logging")
    assert os.environ[VARIABLE] == sys.argv[1]
    if len(sys.argv) > 2:
        raise SystemExit(3)
assert VARIABLE not in os.environ
print("after")
print("after error", file=sys.stderr)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PRINTER, *arguments], capture_output=True, text=True)


def test_all_that_a_process_and_its_children_print_is_in_the_file(any_prefix: str) -> None:
    path = join(any_prefix, "attempts/1.log")
    done = run(path)
    assert (done.stdout, done.stderr) == ("before\nafter\n", "after error\n")
    lines = read_from(path, 0).decode().splitlines()
    for line in ("from print", "to stderr", "from C", "from a child", "child error"):
        assert line in lines
    assert any(line.endswith("INFO stage: from logging") for line in lines)
    assert "before" not in lines
    assert list(sizes_below(any_prefix)) == ["attempts/1.log"]
    assert not os.path.exists(spool_of(path))


def test_a_second_process_appends(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    run(str(path))
    run(str(path))
    assert path.read_text().splitlines().count("from C") == 2


def test_the_log_is_whole_when_the_process_is_asked_to_end(any_prefix: str) -> None:
    path = join(any_prefix, "1.log")
    assert run(path, "exit").returncode == 3
    assert b"from print" in read_from(path, 0)


@pytest.fixture
def lines() -> list[str]:
    return []


def test_a_follower_passes_on_each_line_once_as_it_comes(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "1.log"
    follower = LogFollower(str(path), lines.append)
    follower.poll()
    assert lines == []
    with path.open("ab", buffering=0) as file:
        file.write(b"one\ntw")
        follower.poll()
        assert lines == ["one"]
        file.write(b"o\n\nthree")
        follower.poll()
        follower.poll()
        assert lines == ["one", "two", ""]
    follower.finish()
    follower.finish()
    assert lines == ["one", "two", "", "three"]


def test_of_a_progress_bar_the_last_state_is_passed_on(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "1.log").write_bytes(b"10%\r50%\r100%\r\ndone\r\n")
    LogFollower(str(tmp_path / "1.log"), lines.append).finish()
    assert lines == ["100%", "done"]


def test_a_letter_cut_in_two_is_put_together(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "1.log"
    follower = LogFollower(str(path), lines.append)
    letter = "ü".encode()
    with path.open("ab", buffering=0) as file:
        file.write(letter[:1])
        follower.poll()
        file.write(letter[1:] + b"\xff\n")
        follower.poll()
    assert lines == ["ü�"]


def test_secrets_are_hidden_on_the_way_to_a_log_also_in_a_bucket(any_prefix: str) -> None:
    path = join(any_prefix, "attempts/7.log")
    code = """
import subprocess, sys
from marin_resources.ray_tpu.log.attempt_log import redirect_output
with redirect_output(sys.argv[1], secrets=["hf_secret"], tee=True):
    print("token hf_secret", flush=True)
    subprocess.run(["sh", "-c", "echo a child: $HF_TOKEN; printf 'loading '"], env={"HF_TOKEN": "hf_secret"})
"""
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    kept = [line for line in read_from(path, 0).decode().splitlines(keepends=True) if " INFO " not in line]
    assert kept == ["token ***\n", "a child: ***\n", "loading \n"]
    first, _, others = done.stdout.partition("\n")
    assert first == f"--- marin: attempt 7, its log is {path} ---"
    assert "token ***\na child: ***\n" in others
    assert not os.path.exists(spool_of(path))


def test_without_secrets_no_process_is_between_a_worker_and_its_log(tmp_path: Path) -> None:
    code = """
import os, sys
from marin_resources.ray_tpu.log.attempt_log import is_pumped, redirect_output
with redirect_output(sys.argv[1]):
    print(is_pumped(), os.readlink("/proc/self/fd/1"), os.readlink("/proc/self/fd/2"))
"""
    path = str(tmp_path / "1.log")
    subprocess.run([sys.executable, "-c", code, path], check=True)
    assert Path(path).read_text() == f"False {path} {path}\n"

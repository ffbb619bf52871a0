"""A program beside a step ends with it, with all that it has started, however the step ends."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest
from running import alive, wait_until

from marin_resources.ray_tpu.worker.managed_process import ManagedProcess

FAMILY = """
import os, subprocess, sys

def say(line):  # at once, as others write to the same pipe
    os.write(1, f"{line}\\n".encode())

ready = "import os, time; os.write(1, b'child ready\\\\n'); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", ready])
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    say(f"daemon {os.getpid()}")
    import time
    time.sleep(600)
say(f"child {child.pid}")
say(f"self {os.getpid()}")
child.wait()
"""
"""A program with a child and a daemon of its own."""


def started() -> tuple[ManagedProcess, dict[str, int]]:
    lines: list[str] = []
    process = ManagedProcess([sys.executable, "-c", FAMILY], env={}, on_line=lines.append)
    wait_until(lambda: pids_in(lines).keys() == {"daemon", "child", "self"} and "child ready" in lines, "the family")
    return process, pids_in(lines)


def pids_in(lines: list[str]) -> dict[str, int]:
    return {word: int(pid) for word, _, pid in (line.partition(" ") for line in lines) if pid.isdigit()}


def test_its_descendants_end_with_it_when_it_is_stopped() -> None:
    process, pids = started()
    process.stop()
    assert process.exit_code == -signal.SIGTERM
    assert not any(map(alive, pids.values()))


def test_what_it_has_left_running_ends_when_it_ends_by_itself() -> None:
    process, pids = started()
    psutil.Process(pids["self"]).kill()
    assert process.ended.wait(10)
    assert process.exit_code == -signal.SIGKILL
    assert not any(map(alive, pids.values()))
    process.stop()


def test_it_is_told_to_end_before_it_is_killed() -> None:
    lines: list[str] = []
    script = "import signal, sys, time; signal.signal(15, lambda *a: (print('bye', flush=True), sys.exit(3)));"
    process = ManagedProcess(
        [sys.executable, "-c", f"{script} print('up', flush=True); time.sleep(600)"], env={}, on_line=lines.append
    )
    wait_until(lambda: "up" in lines, "the program")
    process.stop()
    assert (lines, process.exit_code) == (["up", "bye"], 3)


def test_a_program_that_is_not_there_says_so() -> None:
    process = ManagedProcess(["/no/such/python", "-m", "vllm"], env={}, on_line=lambda line: None)
    assert process.ended.wait(10)
    assert process.exit_code == 127
    assert "No such file or directory: '/no/such/python'" in process.last_lines[-1]
    process.stop()


STEP = """
import sys
from marin_resources.ray_tpu.worker.managed_process import ManagedProcess
ManagedProcess([sys.executable, "-c", {family!r}], env={{}}, on_line=lambda line: print(line, flush=True))
sys.stdin.read()
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_step_is_killed(end: signal.Signals) -> None:
    step = subprocess.Popen(
        [sys.executable, "-c", STEP.format(family=FAMILY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert step.stdout is not None
    lines: list[str] = []
    while pids_in(lines).keys() != {"daemon", "child", "self"} or "child ready" not in lines:
        lines.append(step.stdout.readline().strip())
    step.send_signal(end)
    wait_until(lambda: not any(map(alive, pids_in(lines).values())), "all of it to be gone", timeout_s=20)
    step.communicate()


def test_a_kill_of_all_children_of_the_step_leaves_nothing_either() -> None:
    """As Ray does with the children of a worker that ends."""
    step = subprocess.Popen(
        [sys.executable, "-c", STEP.format(family=FAMILY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert step.stdout is not None
    lines: list[str] = []
    while pids_in(lines).keys() != {"daemon", "child", "self"} or "child ready" not in lines:
        lines.append(step.stdout.readline().strip())
    children = psutil.Process(step.pid).children()
    step.kill()
    for child in children:
        child.kill()
    wait_until(lambda: not any(map(alive, pids_in(lines).values())), "all of it to be gone", timeout_s=20)
    step.communicate()

"""A block that exceeds its time limit ends with its process, after a report of where it hung."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from running import alive, wait_until

from marin_resources.ray_tpu.worker.deadline import deadline
from marin_resources.ray_tpu.worker.end_process import end_process

HANGS = """
import subprocess, sys, time
from pathlib import Path
from marin_resources.ray_tpu.worker import deadline as module
from marin_resources.ray_tpu.worker.deadline import deadline

told = Path(sys.argv[1])
module.REPORT_TIMEOUT_S, module.BACKSTOP_S = 0.5, 0.5

def hang_there():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stderr=subprocess.DEVNULL)
    (told / "child").write_text(str(child.pid))
    {hang}

def on_expired(text):
    (told / "text").write_text(text)
    {report}

with deadline({limit_s}, on_expired) as renew:
    hang_there()
(told / "over").touch()
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a process whose function hangs in a block with a deadline."""

    def run_it(hang: str, report: str = "pass", limit_s: float = 0.2) -> subprocess.CompletedProcess[str]:
        (tmp_path / "hangs.py").write_text(HANGS.format(hang=hang, report=report, limit_s=limit_s))
        command = [sys.executable, str(tmp_path / "hangs.py"), str(tmp_path)]
        return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, check=False)

    return run_it


def test_a_process_that_hangs_is_killed_with_its_children_after_it_reported_where(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    assert run("time.sleep(600)").returncode == -signal.SIGKILL
    wait_until(lambda: not alive(int((tmp_path / "child").read_text())), "its child to be gone")
    text = (tmp_path / "text").read_text()
    assert text.startswith("Traceback (most recent call last):\n")
    assert "hang_there()" in text
    assert text.endswith("in hang_there\n    time.sleep(600)\n")
    assert "threading.py" not in text


def test_a_report_that_hangs_is_cut_short(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert run("time.sleep(600)", report="time.sleep(600)").returncode == -signal.SIGKILL


def test_a_report_that_fails_is_printed_and_changes_nothing(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    ended = run("time.sleep(600)", report="raise OSError('no disk')")
    assert ended.returncode == -signal.SIGKILL
    assert "no disk" in ended.stderr


def test_a_block_that_ends_during_the_report_does_not_continue(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    hang = "while not (told / 'text').exists(): time.sleep(0.01)"
    assert run(hang, report="time.sleep(0.3)").returncode == -signal.SIGKILL
    assert not (tmp_path / "over").exists()


def test_a_process_that_hangs_with_the_interpreters_lock_held_ends_and_reports_where(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    # the limit leaves time to begin to hang: the child before that takes some
    ended = run("import re; re.match('(a+)+$', 'a' * 64 + 'b')", limit_s=1.5)
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert "in hang_there" in ended.stderr
    assert not (tmp_path / "text").exists()


@pytest.mark.parametrize("timeout_s", [60, None])
def test_a_block_that_ends_in_time_is_left_alone(timeout_s: float | None) -> None:
    before = set(threading.enumerate())
    with deadline(timeout_s, lambda text: None):
        timers = set(threading.enumerate()) - before
    for timer in timers:
        timer.join(10)
    assert not any(timer.is_alive() for timer in timers)
    assert len(timers) == (1 if timeout_s else 0)


def test_a_limit_that_is_renewed_in_time_does_not_expire_and_then_does(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    renewed = """
    began_s = time.monotonic()
    while time.monotonic() - began_s < 0.6:
        renew()
        time.sleep(0.01)
    (told / "renewed").touch()
    time.sleep(600)
"""
    assert run(renewed).returncode == -signal.SIGKILL
    assert (tmp_path / "renewed").exists()
    assert (tmp_path / "text").exists()


def test_a_report_after_the_block_does_not_end_what_the_process_does_next(tmp_path: Path) -> None:
    script = """
import time
from marin_resources.ray_tpu.worker import deadline
deadline.REPORT_TIMEOUT_S, deadline.BACKSTOP_S, deadline.RENEW_BACKSTOP_S = 0.0, 0.1, 0.0
with deadline.deadline(0.4, print) as renew:
    pass
renew()
time.sleep(1)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_an_error_of_the_block_is_its_own() -> None:
    with pytest.raises(KeyError), deadline(60, lambda text: None):
        raise KeyError("x")


def test_a_worker_of_ray_that_hangs_is_killed_too(shared_ray: None, tmp_path: Path) -> None:
    import ray

    def hang_in_ray(told: str) -> None:
        Path(told).write_text(str(os.getpid()))
        with deadline(0.2, lambda text: None):
            time.sleep(600)

    task = ray.remote(max_retries=0)(hang_in_ray).remote(str(tmp_path / "pid"))
    with pytest.raises(ray.exceptions.WorkerCrashedError):
        ray.get(task)
    worker = int((tmp_path / "pid").read_text())  # Ray hears of its end by a socket, a moment before it is reaped
    wait_until(lambda: not alive(worker), "the worker to be gone")


def test_the_last_action_runs_before_the_end(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        end_process(lambda: (tmp_path / "words").touch(), 10)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert (tmp_path / "words").exists()

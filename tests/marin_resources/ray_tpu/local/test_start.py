"""A Ray that cannot start is one sentence within seconds, and a start that hangs ends with its run, with all of it."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import psutil
import pytest
from running import alive, wait_until

from marin_resources.ray_tpu.local import machine_check
from marin_resources.ray_tpu.local.local_ray import OwnRay
from marin_resources.ray_tpu.local.machine_check import refuse_machine, refuse_process_limit
from marin_resources.ray_tpu.local.start import ray_folder
from marin_resources.ray_tpu.ray_options import RayGoneError, UnmeetableError

SHORTLY_S = 25.0
"""Less than the 30 s that Ray waits for a daemon, whatever has become of it."""


def test_a_folder_whose_path_is_too_long_for_a_socket_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", f"/tmp/{'long' * 20}")
    with pytest.raises(UnmeetableError, match=r"'/tmp/long.*', a path that is \d+ bytes too long .* Set RAY_TMPDIR"):
        ray_folder()


def test_a_relative_folder_is_refused_and_is_not_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_TMPDIR", "of/ray")
    with pytest.raises(UnmeetableError, match=r"in 'of/ray/.*', and Ray requires an absolute path\. Set RAY_TMPDIR"):
        ray_folder()
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", "/dev/null")
    with pytest.raises(UnmeetableError, match=r"in '/dev/null/marin-ray-\d+', .* \(Not a directory\)\. Set RAY_TMPDIR"):
        ray_folder()


def test_a_full_disk_is_named_with_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_check, "FREE_BYTES", 10**18)
    with pytest.raises(RayGoneError, match=rf"the disk of '{tmp_path}', .* has [\d.]+ MB free, and it needs"):
        refuse_machine(str(tmp_path))


def test_a_limit_of_processes_that_no_run_gets_along_with_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)  # root has no limit
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (40, 40))
    with pytest.raises(RayGoneError, match=r"may have 40 processes and threads and has \d+, .* \(ulimit -u\)"):
        refuse_process_limit()
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    refuse_process_limit()


def test_a_ray_that_runs_is_not_refused_for_the_threads_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    own = OwnRay(1)
    own._starting = Future()
    own._starting.set_result("the module ray")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (40, 40))
    assert own.started() == "the module ray"
    own.shutdown()
    with pytest.raises(RayGoneError, match=r"ulimit -u"):
        OwnRay(1).started()


def can_be_without_a_network() -> bool:
    command = ["unshare", "--net", "--map-root-user", "true"]
    return shutil.which("unshare") is not None and subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_be_without_a_network(), reason="this machine gives no network namespace to its user")
def test_a_machine_without_a_loopback_interface_is_named() -> None:
    script = "from marin_resources.ray_tpu.local.machine_check import refuse_machine; refuse_machine('/tmp')"
    command = ["unshare", "--net", "--map-root-user", sys.executable, "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "cannot listen at 12 ports of 127.0.0.1 and connect there (Network is unreachable). Bring" in ended.stderr


START = """
import os, sys
from ray._private import services
services.{daemon} = {program!r}
sys.argv[1:] = []
from marin_assets.experiments.two_steps import steps
from marin_assets import executor_main
executor_main(steps())
"""
"""A run of a script, with another program in the place of a daemon of Ray."""


def run_with(daemon: str, program: str, folder: Path) -> subprocess.Popen[str]:
    """`program`: the lines of a shell's script."""
    file = folder / "daemon.sh"
    file.write_text(f"#!/bin/sh\n{program}\n")
    file.chmod(0o755)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    env |= {"MARIN_PREFIX": str(folder / "outputs"), "DAGSTER_HOME": str(folder / "home")}
    # as a terminal starts it: a shell that starts it in the background lets it ignore Ctrl-C
    return subprocess.Popen(
        [sys.executable, "-c", START.format(daemon=daemon, program=str(file))],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.mark.parametrize(
    ("daemon", "program", "how"),
    [
        pytest.param(
            "RAYLET_EXECUTABLE", "exit 3", "its daemon daemon.sh ended with exit code 3", marks=pytest.mark.long
        ),
        ("RAYLET_EXECUTABLE", "kill -SEGV $$", "its daemon daemon.sh was killed by signal 11"),
        pytest.param(
            "GCS_SERVER_EXECUTABLE", "exit 3", "its daemon daemon.sh ended with exit code 3", marks=pytest.mark.long
        ),
    ],
)
def test_a_daemon_that_ends_at_the_start_is_one_sentence_at_once(
    daemon: str, program: str, how: str, tmp_path: Path
) -> None:
    began_s = time.monotonic()
    with run_with(daemon, program, tmp_path) as run:
        printed = run.communicate()[0]
    assert run.returncode == 1
    last = printed.splitlines()[-1]
    assert last == (
        f"Step 'two_steps/data': Ray did not start on this machine: {how}. Correct that and run again; complete "
        "outputs are reused."
    )
    assert "Traceback" not in printed
    assert time.monotonic() - began_s < SHORTLY_S


def test_the_last_error_in_the_log_of_the_daemon_is_in_the_sentence(tmp_path: Path) -> None:
    line = "[2026-01-01 00:00:00,000 C 1 1] (raylet) store.cc:1: cannot open /dev/shm/plasma"
    program = f"""
for word in "$@"; do case "$word" in --stderr_filepath=*) echo "{line}" > "${{word#*=}}"; esac; done
exit 1"""
    with run_with("RAYLET_EXECUTABLE", program, tmp_path) as run:
        printed = run.communicate()[0]
    assert "ended with exit code 1, and logged: (raylet) store.cc:1: cannot open /dev/shm/plasma. Correct" in printed


def handles(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt:")).split()[1], 16)
    return bool(caught >> (number - 1) & 1)


@pytest.mark.parametrize(
    ("daemon", "number"),
    [
        ("RAYLET_EXECUTABLE", signal.SIGINT),
        pytest.param("GCS_SERVER_EXECUTABLE", signal.SIGTERM, marks=pytest.mark.long),
    ],
)
def test_a_start_that_hangs_is_logged_and_ends_with_its_run(
    daemon: str, number: signal.Signals, tmp_path: Path
) -> None:
    with run_with(daemon, "exec sleep 600", tmp_path) as run:
        assert run.stdout is not None
        line = next(line for line in run.stdout if line.startswith("Ray takes longer"))
        assert line.startswith("Ray takes longer than 5 s to start, with a load of ")
        processes = psutil.Process(run.pid).children(recursive=True)
        assert [process for process in processes if process.name() == "sleep"]
        # the start of Ray begins before the run that it is for, and so can its line
        wait_until(lambda: handles(run.pid, number), "the run to handle the signal", timeout_s=60)
        began_s = time.monotonic()
        run.send_signal(number)
        printed = run.communicate()[0]
        assert time.monotonic() - began_s < SHORTLY_S
    assert run.returncode == 130
    assert "Complete outputs stay; " in printed
    assert " again to continue." in printed
    wait_until(lambda: not any(alive(process.pid) for process in processes), "all processes to end", timeout_s=10)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise ModuleNotFoundError(\"No module named 'ray'\", name='ray')", "No module named 'ray'"),
        ("raise ImportError('libc.so.7: cannot open shared object file')", "libc.so.7: cannot open shared object file"),
    ],
)
def test_a_ray_that_is_absent_or_broken_is_one_sentence(body: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray/__init__.py").write_text(body)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    env |= {"MARIN_PREFIX": str(tmp_path / "outputs"), "DAGSTER_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "marin_assets.experiments.two_steps"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(f"Ray cannot be imported by {sys.executable!r} (")
    assert f"{why}). Install it again: make " in last
    assert "Traceback" not in ended.stderr

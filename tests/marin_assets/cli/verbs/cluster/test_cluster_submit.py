"""Any command as a job, with the code of the working directory."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs_there import JobsThere

from marin_resources.configuration.settings import project_root
from marin_resources.ray_tpu.cluster.api.jobs_api import JobStatus

Marin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with our packages and a program."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "marin_resources").symlink_to(project_root() / "marin_resources")
    (folder / "say.py").write_text("import os, sys; print(os.environ['COLOUR'], sys.executable, sys.argv[1:])")
    monkeypatch.setenv("MARIN_CLUSTER_WORKING_DIR", str(folder))
    return folder


def test_a_command_runs_there_with_the_code_that_is_here(
    marin: Marin, jobs_there: JobsThere, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_CLUSTER_ENVIRONMENTS", f"/no/such/python=vllm,{sys.executable}=train+curate")
    options = ["--name", "painter", "--set", "COLOUR=green", "--extra", "train"]
    arguments = ["--flag", "a 'b' $HOME", "--", "-x"]
    code, out, err = marin("cluster", "submit", *options, "--", "python", "say.py", *arguments)
    assert code == 0, err
    # Not at the end: Ray flushes its own line about the entry point when the program runs already.
    assert f"green {sys.executable} {arguments}" in out.splitlines()
    assert err.splitlines()[0].startswith("job painter-")
    assert err.splitlines()[0].endswith(f" on {jobs_there.address}")


def test_an_environment_that_no_node_has_is_reported(
    marin: Marin, jobs_there: JobsThere, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_CLUSTER_ENVIRONMENTS", "/no/such/python=vllm")
    code, out, err = marin("cluster", "submit", "--extra", "tpu", "--", "python", "say.py")
    assert (code, out) == (2, "")
    assert "The command requests the extras tpu, and no environment of the cluster has them all" in err


@pytest.mark.long
def test_its_exit_code_is_the_commands(marin: Marin, jobs_there: JobsThere, here: Path) -> None:
    code, out, err = marin("cluster", "submit", "--", "sh", "-c", "echo before; exit 7")
    assert code == 7
    assert "before\n" in out
    assert "has ended: FAILED" in err


@pytest.mark.long
def test_a_secret_comes_from_the_node_and_is_in_nothing_that_was_submitted(
    marin: Marin, jobs_there: JobsThere, here: Path, tmp_path: Path
) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "MY_TOKEN").write_text("hunter2\n")
    folder = f"MARIN_SECRETS_DIR={tmp_path}/secrets"
    count = "import os; print(len(os.environ['MY_TOKEN']), 'letters')"
    code, out, err = marin("cluster", "submit", "--set", folder, "--env", "MY_TOKEN", "--", "python", "-c", count)
    assert code == 0, err
    assert "7 letters" in out.splitlines()
    assert "hunter2" not in json.dumps(dataclasses.asdict(jobs_there.newest()), default=str)


@pytest.mark.long
def test_one_need_not_wait(marin: Marin, jobs_there: JobsThere, here: Path) -> None:
    code, out, err = marin("cluster", "submit", "--no-wait", "--cpus", "0.1", "--", "/usr/bin/env", "sleep", "0.1")
    assert (code, err) == (0, "")
    job = out.strip()
    assert job.startswith("env-")
    assert jobs_there.until_ended(job).status is JobStatus.SUCCEEDED


@pytest.mark.long
def test_ctrl_c_leaves_it_running_and_says_how_to_end_it(marin: Marin, jobs_there: JobsThere, here: Path) -> None:
    command = [sys.executable, "-m", "marin_assets.cli", "cluster", "submit", "--", "sh", "-c", "echo up; sleep 100"]
    submits = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a test runner in the background may have been told to ignore Ctrl-C, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert submits.stdout is not None
    assert next(line for line in submits.stdout if line == "up\n")
    submits.send_signal(signal.SIGINT)
    _, err = submits.communicate(timeout=120)
    job = jobs_there.newest().submission_id
    assert submits.returncode == 130
    assert err.splitlines()[-1] == (
        f"Job {job} keeps running. Watch it: marin cluster logs {job} --follow. End it: marin cluster stop-job {job}"
    )
    assert jobs_there.info(job).status is JobStatus.RUNNING
    assert marin("cluster", "stop-job", job)[:2] == (0, f"Job {job} has ended: STOPPED.\n")

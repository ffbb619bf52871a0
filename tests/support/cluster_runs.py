"""Experiments whose steps are jobs of a cluster: write one, start it, read its output."""

from __future__ import annotations

import re
import subprocess
import threading
from pathlib import Path

from ray_cluster import Cluster
from running import start_script

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import functools
import toy_steps
from marin_assets import executor_main

toy = functools.partial(toy_steps.toy, own_job={own_job})
a = toy("a")
b = toy("b", toy_steps.{fn}, reads=a, gate={gate!r})
executor_main([toy("c", reads=b)])
"""
ONE_STEP = """
import sys
sys.path.insert(0, {tests!r})
import toy_steps
from marin_assets import executor_main

executor_main([toy_steps.toy("b", toy_steps.{fn}, gate={gate!r}, own_job={own_job})])
"""


def write_experiment(
    folder: Path, gate: Path, fn: str = "wait_at_gate", *, source: str = SCRIPT, own_job: bool = True
) -> Path:
    """Write an experiment of toy/a, toy/b with this function, and toy/c, each reading the one before; or of toy/b.

    The steps are jobs of their own, or small steps of a batch job.
    """
    script = folder / "experiment.py"
    script.write_text(source.format(tests=str(Path(__file__).parent), gate=str(gate), fn=fn, own_job=own_job))
    return script


def env_for(prefix: Path, dagster_home: Path, cluster: Cluster, *, address: str | None = None) -> dict[str, str]:
    """The variables of runs on the cluster; `address` is that of a proxy before it."""
    return {
        "MARIN_PREFIX": str(prefix),
        "DAGSTER_HOME": str(dagster_home),
        "MARIN_CLUSTER": address or cluster.address,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": cluster.token_path,
        "PYTHONUNBUFFERED": "1",
    }


def start_run(script: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    return start_script(script, env=env)


def read_until(run: subprocess.Popen[str], text: str, timeout_s: float = 300) -> str:
    """The output of a script up to the line with the text. A script that does not print it in time is killed."""
    assert run.stdout is not None
    lines: list[str] = []
    killer = threading.Timer(timeout_s, run.kill)
    killer.start()
    try:
        while text not in (lines or [""])[-1]:
            line = run.stdout.readline()
            assert line, f"it ended without {text!r}, or did not print it in {timeout_s:.0f} s: " + "".join(lines)
            lines.append(line)
    finally:
        killer.cancel()
    return "".join(lines)


def worker_of(text: str) -> int:
    """The process that logged that it waits."""
    [line] = [line for line in text.splitlines() if "waiting in process" in line]
    return int(line.split()[-1])


def job_of(output: str, step: str) -> str:
    """The id of the step's job, from the output of a run."""
    for pattern in (
        rf"{step}\S*: computing .* as cluster job (\S+) on",
        r"its cluster job (\S+) keeps running",
        r"attached to cluster job (\S+) on",
    ):
        if found := re.search(pattern, output):
            return found.group(1)
    raise AssertionError(f"no job of {step!r} is named in: {output}")

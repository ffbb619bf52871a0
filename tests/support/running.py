"""Run steps as a user would, and wait for things to happen."""

from __future__ import annotations

import glob
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import create_execution_plan, execute_run

from marin_assets.assets.assemble import assemble
from marin_assets.catalog.experiments_folder import Experiments
from marin_assets.step.step import Step

T = TypeVar("T")
ROOT = Path(__file__).parents[2]

WORKSPACE = (
    "load_from: [{{python_module: {{module_name: location, working_directory: {folder!r}, location_name: marin}}}}]"
)
LOCATION = """
import sys
sys.path.insert(0, {tests!r})
import toy_steps
from running import definitions_of
from toy_steps import toy

slow = toy("slow", toy_steps.{fn}, gate={gate!r}, own_job={own_job})
defs = definitions_of([toy("after", reads=slow), toy("quick", value={value})])
"""


def definitions_of(steps: Sequence[Step]) -> dg.Definitions:
    return assemble(Experiments({"experiment": tuple(steps)}, {}))


def run_job(definitions: dg.Definitions, job_name: str, instance: dg.DagsterInstance, config: dict | None = None):
    """One run of a job with its own executor, in this process."""
    job = definitions.resolve_job_def(job_name)
    config = config or {}
    run = instance.create_run_for_job(job, run_config=config, execution_plan=create_execution_plan(job, config))
    return execute_run(InMemoryJob(job), run, instance)


def run_steps(steps: Sequence[Step], instance: dg.DagsterInstance):
    return run_job(definitions_of(steps), "experiment", instance)


def reused(result) -> dict[str, bool]:
    """Asset -> whether its materialization was a reuse."""
    return {
        event.asset_key.to_user_string(): event.materialization.tags["marin/reused"] == "true"
        for event in result.get_asset_materialization_events()
    }


PATIENCE = 4
"""A machine may be so much slower than two quiet cores before a wait counts as a hang."""
HANG_S = 30
"""A shorter limit is what a test claims, and holds on every machine."""


def wait_until(condition: Callable[[], T], what: str, timeout_s: float = 60) -> T:
    """The first true value of `condition`; an error that says what was waited for."""
    if timeout_s >= HANG_S:
        timeout_s *= PATIENCE
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise TimeoutError(f"waited {timeout_s} s in vain for {what}")


def logged(prefix: Path, name: str, text: str, *, by: subprocess.Popen[str] | None = None) -> Callable[[], str | None]:
    """A condition: the text is in the log of the latest attempt at the step's output.

    `by`: the script that computes it. When it has ended without the text, an AssertionError has its output.
    """

    def look() -> str | None:
        has_ended = by is not None and by.poll() is not None
        logs = sorted(glob.glob(f"{prefix}/{name}-*/.marin/attempts/*.log"), key=os.path.getmtime)
        content = Path(logs[-1]).read_text() if logs else ""
        if text in content:
            return content
        if by is not None and has_ended:
            raise AssertionError(f"it ended with {by.returncode}, without {text!r} of {name}: {by.communicate()[0]}")
        return None

    return look


def start_script(script: str | Path, *arguments: str, env: dict[str, str]) -> subprocess.Popen[str]:
    """A script in a process group of its own, so that a signal can be sent as a terminal would."""
    return subprocess.Popen(
        [sys.executable, str(script), *arguments],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=_take_signals,
    )


def _take_signals() -> None:
    """In the new process: a test runner may ignore signals, or block them, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it ended before the look, or during it
        return False


def write_location(
    folder: Path, *, gate: Path, value: int = 1, fn: str = "wait_with_a_child", own_job: bool | None = None
) -> Path:
    """A code location of toy steps, one of which waits at the gate; the workspace file to start it with."""
    support = str(ROOT / "tests" / "support")
    text = LOCATION.format(tests=support, gate=str(gate), value=value, fn=fn, own_job=own_job)
    (folder / "location.py").write_text(text)
    (folder / "workspace.yaml").write_text(WORKSPACE.format(folder=str(folder)))
    return folder / "workspace.yaml"

"""The whole deployment with a run under way: any of its processes is killed, or all at once, or the database is away.

Each comes back by itself, the run ends, and no output is computed twice: of its attempts exactly one succeeded. An
attempt whose worker was killed is lost, and another takes its place.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest
from rehearsal import Rehearsal, rehearsal
from running import wait_until

from marin_assets.experiments import quickstart
from marin_assets.step.graph import build_graph
from marin_resources.dagster_fixes.run_launcher import TAG as PROCESS_TAG

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

JOB = "quickstart_tiny"
PEOPLES = ("proxy", "provider", "webserver", "read_only", "metrics")
UNDER_THE_RUN = ("daemon", "code", "objects", "postgres", "ray")
END_S = 1800.0
AWAY_S = 120.0
OUTCOMES = """
import json, sys
from marin_resources.storage.output.attempts import latest_attempt, read_attempt
from marin_resources.storage.output.record import read_record

def outcomes(path):
    found = []
    for number in range(1, latest_attempt(path) + 1):
        try:
            found.append(read_attempt(path, number).get("outcome"))
        except FileNotFoundError:
            found.append(None)
    return {"complete": read_record(path) is not None, "outcomes": found}

json.dump({path: outcomes(path) for path in sys.argv[1:]}, sys.stdout)
"""


@pytest.fixture
def deployment() -> Iterator[Rehearsal]:
    with rehearsal() as deployment:
        yield deployment


def test_every_process_is_killed_in_turn(deployment: Rehearsal) -> None:
    launch(deployment)
    for service in (*PEOPLES, *UNDER_THE_RUN):
        await_steps_under_way(deployment)
        killed = deployment.pid(service)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: deployment.pid(service) not in (0, killed), f"{service} is back", timeout_s=120)  # noqa: B023
        deployment.await_all()
    process = await_steps_under_way(deployment)
    os.kill(process, signal.SIGKILL)
    await_the_end(deployment)
    assert_made_once(deployment)


def test_all_are_killed_at_once(deployment: Rehearsal) -> None:
    launch(deployment)
    await_steps_under_way(deployment)
    supervisor = int(deployment.supervisor("pid"))
    ours = [process for process in deployment.processes() if process.pid != supervisor]
    assert len(ours) > len(PEOPLES) + len(UNDER_THE_RUN)
    for process in ours:
        process.kill()
    deployment.await_all()
    await_the_end(deployment)
    assert_made_once(deployment)


def test_the_database_is_away_for_two_minutes(deployment: Rehearsal) -> None:
    launch(deployment)
    await_steps_under_way(deployment)
    deployment.supervisor("stop", "postgres")
    time.sleep(AWAY_S)  # what is tested is how long it is away
    deployment.supervisor("start", "postgres")
    deployment.await_all()
    await_the_end(deployment)
    assert_made_once(deployment)
    with deployment.instance() as instance:
        assert len(instance.get_runs()) == 1, "the run itself has waited"


def launch(deployment: Rehearsal) -> None:
    answer = deployment.person("ada").launch(JOB)
    assert answer["__typename"] == "LaunchRunSuccess", answer


def newest_run(deployment: Rehearsal):
    """The newest run of the job: one that is gone is launched again by the daemon."""
    with deployment.instance() as instance:
        runs = instance.get_runs()
    assert {run.tags["marin/user"] for run in runs} == {"ada@lab.example"}
    return runs[0]


def await_steps_under_way(deployment: Rehearsal) -> int:
    """Wait until the newest run has jobs on the cluster. Return the pid of its process."""

    def process() -> int | None:
        run = newest_run(deployment)
        assert not run.is_success, "the run ended before all was killed"
        run_id, _, process = run.tags.get(PROCESS_TAG, "").partition(" ")
        if run_id != run.run_id or "marin/jobs" not in run.tags:
            return None
        pid = int(process.split("/")[1])
        return pid if psutil.pid_exists(pid) else None

    return wait_until(process, "a run with jobs", timeout_s=300)


def await_the_end(deployment: Rehearsal) -> None:
    wait_until(lambda: newest_run(deployment).is_success, "a run that succeeds", timeout_s=END_S)


def assert_made_once(deployment: Rehearsal) -> None:
    environment = {**os.environ, **deployment.layout.environment()}
    prefix = environment["MARIN_PREFIX"]
    paths = [f"{prefix}/{node.output.relative()}" for node in build_graph(quickstart.steps("tiny"))]
    command = [sys.executable, "-c", OUTCOMES, *paths]
    found = json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert found.keys() == set(paths)
    for path, output in found.items():
        assert output["complete"], (path, output)
        assert output["outcomes"].count("success") == 1, (path, output)
        assert "failed" not in output["outcomes"], (path, output)

"""`marin cluster restart`: jobs are backed up and submitted again, once, and notes and attempts stay right."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster_runs import env_for
from ray_cluster import Cluster
from running import start_script, wait_until
from toy_steps import calls

from marin_resources.storage.output.attempts import read_attempt
from marin_resources.storage.output.notes.job_notes import JobNote, note_path, read_note
from marin_resources.storage.output.status import read_status

pytestmark = pytest.mark.long

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import toy_steps
from marin_assets import executor_main

name = sys.argv.pop(1)
own_job = not name.startswith("small")
executor_main([toy_steps.toy(name, toy_steps.wait_at_gate, gate={gate!r}, own_job=own_job)])
"""


@dataclass(frozen=True)
class World:
    cluster: Cluster
    prefix: Path
    script: Path
    gate: Path
    env: dict[str, str]

    def start(self, step: str) -> subprocess.Popen[str]:
        """A run of one step; returns when its function was called."""
        run = start_script(self.script, step, env={**self.env, "DAGSTER_HOME": f"{self.env['DAGSTER_HOME']}-{step}"})
        wait_until(lambda: step in self.made(), f"{step} to begin")
        return run

    def made(self) -> list[str]:
        return [name.rpartition("-")[0] for name in calls(self.prefix)]

    def marin(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "marin_assets.cli", *words],
            env={**os.environ, **self.env, "MARIN_CLUSTER": "local"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def path(self, step: str) -> str:
        [found] = self.prefix.glob(f"toy/{step}-*")
        return str(found)

    def note(self, step: str, attempt: int) -> JobNote:
        note = read_note(note_path(self.path(step), attempt))
        assert note is not None
        return note


@pytest.fixture
def world(tmp_path: Path, prefix: Path, dagster_home: Path) -> Iterator[World]:
    gate, script = tmp_path / "gate", tmp_path / "experiment.py"
    gate.touch()
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1] / "support"), gate=str(gate)))
    with Cluster(cpus=4) as cluster:
        env = {**env_for(prefix, dagster_home, cluster), "MARIN_STATE_DIR": str(cluster.state)}
        yield World(cluster=cluster, prefix=prefix, script=script, gate=gate, env=env)


def test_jobs_go_on_after_a_restart_each_once(world: World, tmp_path: Path) -> None:
    waiting = world.start("waiting")
    detached, small = world.start("detached"), world.start("small")
    for run in (detached, small):
        run.send_signal(signal.SIGKILL)
        run.wait()
    said = tmp_path / "said.txt"
    command = world.marin(
        "cluster", "submit", "--no-wait", "--cpus", "0.5", "--", "bash", "-c", f"echo begun >> {said}; sleep 600"
    )
    wait_until(said.exists, "the command to begin")

    looked = world.marin("cluster", "restart", "local", "--dry-run")
    assert "3 steps, 1 command in " in looked
    assert list(world.prefix.glob(".marin/clusters/*")) == []
    restarted = world.marin("cluster", "restart", "local", "--yes")

    assert "3 steps, 1 command in " in restarted
    assert f"submitted again: {command.split()[0]}" in restarted
    for step in ("detached", "small"):
        assert f"submitted again: {world.note(step, 2).submission_id}" in restarted
        assert (world.note(step, 1).ended, world.note(step, 2).ended) == ("its cluster was restarted", None)
        assert read_attempt(world.path(step), 1)["error"] == "its cluster was restarted"
    wait_until(lambda: sorted(world.made()) == sorted(2 * ["waiting", "detached", "small"]), "all to begin again")
    wait_until(lambda: said.read_text().split() == ["begun", "begun"], "the command to begin again")

    [backup] = world.prefix.glob(".marin/clusters/*.json")
    again = world.marin("cluster", "restart", "local", "--from", str(backup))
    assert again.count("not needed") == 2, again  # the waiting run's step, and the command
    assert again.count("submitted again") == 2, "the jobs that are there are found by their ids"
    world.gate.unlink()
    assert waiting.wait(timeout=120) == 0
    for step in ("waiting", "detached", "small"):
        wait_until(lambda step=step: read_status(world.path(step)) == "SUCCESS", f"{step} to be complete")
        assert read_note(note_path(world.path(step), 3)) is None
        assert read_attempt(world.path(step), 2)["outcome"] == "success"
    assert len(world.made()) == 6

    after = world.marin("cluster", "restart", "local", "--from", str(backup))
    assert after.count("its output is complete") == 3


def test_what_cannot_be_backed_up_is_not_restarted(world: World) -> None:
    world.marin("cluster", "restart", "local", code=2)
    world.cluster.freeze_dashboard()
    said = world.marin("cluster", "restart", "local", "--yes", code=1)
    assert "No job is backed up, and nothing is restarted. If its jobs may be lost: --without-jobs." in said
    world.cluster.thaw()
    assert "answers" in world.marin("cluster", "local", "status")


def test_jobs_of_a_head_that_is_there_still_are_not_submitted_twice(world: World) -> None:
    run = world.start("waiting")
    world.marin("cluster", "restart", "local", "--dry-run")
    folder = world.prefix / ".marin/clusters"
    folder.mkdir(parents=True)
    backup = folder / "b.json"
    note = note_path(world.path("waiting"), 1)
    session = world.note("waiting", 1).session
    fields = {"format_version": 1, "address": "x", "session": session, "at": "x", "steps": [note], "commands": []}
    backup.write_text(json.dumps(fields))
    said = world.marin("cluster", "restart", "local", "--from", str(backup), code=1)
    assert re.search("is the one whose jobs were backed up, so they are there still", said)
    world.gate.unlink()
    assert run.wait(timeout=120) == 0
    assert world.made() == ["waiting"]


def test_a_backup_that_is_none_is_a_sentence(world: World, tmp_path: Path) -> None:
    assert "There is no backup of jobs at" in world.marin("cluster", "restart", "local", "--from", "/no/file", code=1)
    damaged = tmp_path / "damaged.json"
    damaged.write_text('{"format_version": 1, "steps": 3}')
    assert "backup of jobs" in world.marin("cluster", "restart", "local", "--from", str(damaged), code=1)

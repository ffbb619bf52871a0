"""`marin list` and `marin status`, of experiments and of a script."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from location import Location

from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.notes.job_notes import JobNote, Submitter, create_note
from marin_resources.storage.output.notes.progress import Progress, write_progress
from marin_resources.storage.paths import join
from marin_resources.wire.task import Task

Marin = Callable[..., tuple[int, str, str]]
SCRIPT = """
import sys
from dataclasses import dataclass
import neighbour
from marin_assets import Step, THIS_OUTPUT_PATH, executor_main

@dataclass(frozen=True)
class Config:
    output_path: str = THIS_OUTPUT_PATH

def make(config):
    raise RuntimeError("nothing is computed")

if __name__ == "__main__":
    assert sys.argv[1:] == []
    executor_main([Step(name=f"raw/{name}", fn=make, config=Config()) for name in neighbour.NAMES])
    raise RuntimeError("the script goes on")
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "neighbour.py").write_text('NAMES = ("a", "b")\n')
    (folder / "my_experiment.py").write_text(SCRIPT)
    return str(folder / "my_experiment.py")


def test_steps_are_listed_with_their_paths(location: Location, marin: Marin) -> None:
    code, out, _ = marin("list", "--experiment", location.name)
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        [node.name, f"{node.name}-{node.version.hash}"] for node in location.graph
    ]
    code, out, _ = marin("list", "toy/tokens", "--json")
    [one] = json.loads(out)
    assert (one["name"], one["inputs"]) == ("toy/tokens", ["toy/data"])


def test_the_status_tells_what_is_there(made: Location, marin: Marin) -> None:
    code, out, _ = marin("status", "--experiment", made.name)
    *rows, summary = out.splitlines()
    assert code == 0
    states = {row.split()[1].rpartition("-")[0]: row.split()[0] for row in rows}
    assert states == {
        "toy/data": "complete",
        "toy/tokens": "complete",
        "toy/model": "complete",
        "toy/database": "missing",
    }
    assert "3 files, " in rows[0]
    assert summary == f"3 complete, 1 missing at {made.store.prefix}"


def test_what_runs_failed_or_died_is_told_apart(location: Location, marin: Marin) -> None:
    nodes = {node.name: node.output for node in location.graph}
    running = location.store.claim(nodes["toy/data"], attempt=1, resumable=False, run_id=None)
    failed = location.store.claim(nodes["toy/tokens"], attempt=1, resumable=False, run_id=None)
    location.store.fail(failed, {}, "ValueError: the value 3 is not liked", "")
    dead = location.store.claim(nodes["toy/model"], attempt=1, resumable=False, run_id=None)
    dead.lease.release()
    write_bytes(join(location.path("toy/database"), ".executor_status"), b"NONSENSE")
    try:
        code, out, _ = marin("status", "--experiment", location.name, "--json")
        found = {one["name"]: one for one in json.loads(out)["outputs"]}
    finally:
        running.lease.release()
    assert found["toy/data"]["state"] == "running"
    assert "process " in found["toy/data"]["holder"]
    assert found["toy/tokens"]["state"] == "failed"
    assert found["toy/tokens"]["error"] == "ValueError: the value 3 is not liked"
    assert found["toy/model"]["state"] == "dead"
    assert found["toy/database"]["state"] == "blocked"
    assert code == 1


def test_what_runs_now_is_shown_with_its_job_its_speed_and_what_it_says(location: Location, marin: Marin) -> None:
    [output] = [node.output for node in location.graph if node.name == "toy/data"]
    claim = location.store.claim(output, attempt=1, resumable=False, run_id="run-1")
    write_bytes(log_path(claim.path, 1), b"begun\n" + b"." * 5000 + b"\n10%\r80% done\n\n")
    pace = Progress(step=120, at="2026-01-01T00:00:00+00:00", steps_per_s=0.08, of=600, numbers={"loss": 2.5})
    write_progress(claim.path, 1, pace)
    task = Task(output=output, prefix=location.store.prefix, path=claim.path, fn="os:getcwd", config={})
    me = Submitter.here("run-1")
    at = {"submission_id": "step-1", "dashboard": "http://head:8265", "session": "s", "submitted_at": "2026-01-01"}
    create_note(claim.path, JobNote(attempt=1, task=task, code={}, by=me, owner=me, **at))
    try:
        code, out, _ = marin("status", "toy/data")
        state, running, summary = out.splitlines()
        found = json.loads(marin("status", "toy/data", "--json")[1])["outputs"][0]["running"]
    finally:
        claim.lease.release()
    assert (code, summary) == (0, f"1 running at {location.store.prefix}")
    assert f"by process {os.getpid()} on {os.uname().nodename}, Dagster run run-1, since " in state
    assert re.fullmatch(
        r" +attempt 1, for \d+ s, cluster job step-1 on http://head:8265, "
        r"step 120 of 600 at 12.5 s/step, 1 h 40 min left, loss 2.5: 80% done",
        running,
    )
    assert (found["attempt"], found["job"], found["cluster"]) == (1, "step-1", "http://head:8265")
    assert (found["step"], found["steps_per_s"], found["last_line"]) == (120, 0.08, "80% done")
    assert (found["of"], found["left_s"], found["numbers"]) == (600, 6000.0, {"loss": 2.5})


def test_a_pace_that_cannot_be_read_is_told_and_hides_no_state(location: Location, marin: Marin) -> None:
    [output] = [node.output for node in location.graph if node.name == "toy/data"]
    claim = location.store.claim(output, attempt=1, resumable=False, run_id=None)
    write_bytes(join(claim.path, ".marin/attempts/1.pace.json"), b"NONSENSE")
    try:
        code, out, _ = marin("status", "toy/data")
    finally:
        claim.lease.release()
    assert code == 0
    assert "1.pace.json' " in out.splitlines()[1]


def test_a_script_gives_its_steps_and_computes_nothing(marin: Marin, script: str, prefix: Path) -> None:
    arguments, paths = list(sys.argv), list(sys.path)
    code, out, err = marin("list", "--script", script)
    assert (code, [line.split()[0] for line in out.splitlines()]) == (0, ["raw/a", "raw/b"]), err
    code, out, _ = marin("status", "raw/b", "--script", script)
    assert (code, out.splitlines()[-1]) == (0, f"1 missing at {prefix}")
    assert (sys.argv, sys.path) == (arguments, paths)
    assert not list(prefix.glob("raw/*"))


def test_the_first_word_may_be_a_script_as_for_plan_and_run(marin: Marin, script: str) -> None:
    for verb in ("list", "status", "tree"):
        assert marin(verb, script) == marin(verb, "--script", script)
        assert marin(verb, script, "raw/b") == marin(verb, "--script", script, "raw/b")
    code, _, err = marin("status", f"{script.removesuffix('.py')}s.py")
    assert (code, err.startswith("There is no script '")) == (2, True)


def test_verify_takes_the_steps_of_a_script(marin: Marin, script: str, prefix: Path) -> None:
    code, _, err = marin("verify", "--script", script)
    assert (code, err) == (
        2,
        f"None of the 2 selected outputs is complete at the prefix {str(prefix)!r}. "
        "Give another --prefix, or compute them first.\n",
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "There is no script '"),
        ("1 / 0", "cannot be read: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "cannot be read: SystemExit: 3"),
        ("", "makes no call of executor_main"),
    ],
)
def test_a_script_that_gives_no_steps_is_one_sentence(
    marin: Marin, tmp_path: Path, prefix: Path, text: str | None, sentence: str
) -> None:
    path = tmp_path / "script.py"
    if text is not None:
        path.write_text(text)
    code, out, err = marin("list", "--script", str(path))
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_script_and_an_experiment_are_too_much(marin: Marin, script: str) -> None:
    code, _, err = marin("list", "--script", script, "--experiment", "quickstart")
    assert code == 2
    assert "expected one of them" in err

"""A prefix that marin-core filled is ours too, and the other way round: with the real package, on disk and on GCS.

marin-core runs in an environment of its own (1.8 GB in uv's cache, made from the package index), so all of this is
long.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bucket_dag import NAMES, PARTIAL, build, calls, value_at
from marin_process import MarinProcess
from our_words import OURS
from running import ROOT, start_script, wait_until

from marin_assets.step.graph import build_graph
from marin_resources.storage.files import exists, read_json
from marin_resources.storage.output.record import FORMAT_VERSION
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.types.output import Match, Observed

pytestmark = pytest.mark.long

TTL_S = 3.0
SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from bucket_dag import build
from marin_assets import executor_main
from our_words import OURS

step = build(OURS, {gates!r})[{step!r}]
executor_main([step.with_output_path({override!r}) if {override!r} else step])
"""
RAW, SQUARES, SUM, REPORT = NAMES


@pytest.fixture(scope="module")
def marin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MarinProcess]:
    """One that lives through all tests: it takes long to start."""
    process = MarinProcess(tmp_path_factory.mktemp("marin") / "log.txt")
    yield process
    process.end()


@pytest.fixture(scope="module")
def quick(marin: MarinProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MarinProcess]:
    """Another one, whose leases are renewed twice a second, and which waits as shortly for those of others."""
    process = MarinProcess(tmp_path_factory.mktemp("quick") / "log.txt", python=[marin.python], heartbeat_s=0.5)
    yield process
    process.end()


@pytest.fixture
def mortal(marin: MarinProcess, tmp_path: Path) -> Iterator[MarinProcess]:
    """One to kill."""
    process = MarinProcess(tmp_path / "marin.txt", python=[marin.python])
    yield process
    process.kill()


class Ours:
    """Our side of the DAG, as a script in processes of its own."""

    def __init__(self, folder: Path, prefix: str, dagster_home: Path) -> None:
        self.folder, self.prefix = folder, prefix
        self.started: list[subprocess.Popen[str]] = []
        self.env = {"MARIN_PREFIX": prefix, "DAGSTER_HOME": str(dagster_home), "MARIN_LEASE_TTL_S": str(TTL_S)}

    def start(
        self, step: str, *options: str, gates: dict[str, str] | None = None, override: str = ""
    ) -> subprocess.Popen[str]:
        text = SCRIPT.format(tests=str(ROOT / "tests" / "support"), step=step, gates=gates or {}, override=override)
        script = self.folder / "experiment.py"
        script.write_text(text)
        self.started.append(start_script(script, *options, env={**self.env, "PYTHONUNBUFFERED": "1"}))
        return self.started[-1]

    def run(self, step: str, *options: str, override: str = "") -> str:
        """What a run says that ends well."""
        return finished(self.start(step, *options, override=override))

    def look(self, name: str) -> Observed:
        output = build_graph([step := build(OURS)[name]])[step].output
        return Store(self.prefix).look([output])[output]

    def half_done(self, name: str) -> str:
        """The path of the step's output, once its function waits at the gate."""
        path = self.look(name).path
        wait_until(lambda: exists(join(path, PARTIAL)), f"{name} to be half done", timeout_s=300)
        return path

    def end(self) -> None:
        """Kill what a test that failed has left."""
        for run in self.started:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()


def finished(run: subprocess.Popen[str]) -> str:
    said, _ = run.communicate(timeout=800)
    assert run.returncode == 0, said
    return said


def read_until(run: subprocess.Popen[str], words: str) -> str:
    """The line that has the words."""
    assert run.stdout is not None
    lines = []
    for line in run.stdout:
        lines.append(line)
        if words in line:
            return line
    raise AssertionError(f"it ended without {words!r}:\n{''.join(lines)}")


@pytest.fixture
def ours(disk_or_gcs_prefix: str, dagster_home: Path, tmp_path: Path) -> Iterator[Ours]:
    side = Ours(tmp_path, disk_or_gcs_prefix, dagster_home)
    yield side
    side.end()


@pytest.fixture
def ours_in_a_bucket(gcs_prefix: str, dagster_home: Path, tmp_path: Path) -> Iterator[Ours]:
    side = Ours(tmp_path, gcs_prefix, dagster_home)
    yield side
    side.end()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    path = tmp_path / "gate"
    path.touch()
    return path


def test_what_marin_computed_is_verified_reused_and_read(marin: MarinProcess, ours: Ours) -> None:
    path = marin.ask("run", prefix=ours.prefix, step=SUM)
    planned = ours.run(REPORT, "--dry-run")
    assert "1 to run, 3 to reuse" in planned
    assert "unverified" not in planned
    assert "1 computed, 3 reused, 0 failed" in ours.run(REPORT)
    assert calls(ours.prefix, "marin") == sorted([RAW, SQUARES, SUM])
    assert calls(ours.prefix, "us") == [REPORT]
    assert value_at(path) == {"value": 6, "by": "marin"}
    assert value_at(ours.look(REPORT).path) == {"value": 10, "by": "us"}


def test_what_marin_recorded_without_a_version_is_reused_and_called_unverified(marin: MarinProcess, ours: Ours) -> None:
    path = marin.ask("run_spec", prefix=ours.prefix, name="raw/numbers")
    place = path.removeprefix(ours.prefix + "/")
    assert "complete, unverified: its record has no version" in ours.run(RAW, "--dry-run", override=place)
    assert "0 computed, 1 reused, 0 failed" in ours.run(RAW, override=place)
    assert value_at(path) == {"value": 7, "by": "marin"}


def test_what_marin_made_from_another_recipe_is_an_error(marin: MarinProcess, ours: Ours) -> None:
    path = marin.ask("run", prefix=ours.prefix, step=RAW, override="kept/here")
    run = ours.start(SUM, override="kept/here")
    said, _ = run.communicate(timeout=800)
    assert run.returncode == 1
    assert f"'{path}' holds a complete output of another version of 'tokenized/sum'" in said
    assert value_at(path) == {"value": 1, "by": "marin"}


def test_what_we_computed_is_done_for_marin(marin: MarinProcess, ours: Ours) -> None:
    assert "3 computed, 0 reused, 0 failed" in ours.run(SUM)
    path = marin.ask("run", prefix=ours.prefix, step=REPORT)
    assert calls(ours.prefix, "us") == sorted([RAW, SQUARES, SUM])
    assert calls(ours.prefix, "marin") == [REPORT]
    assert value_at(path) == {"value": 10, "by": "marin"}


def test_what_marin_writes_over_our_record_is_not_lost(marin: MarinProcess, ours: Ours) -> None:
    ours.run(RAW)
    before = ours.look(RAW)
    marin.ask("run", prefix=ours.prefix, step=RAW)
    assert read_json(join(before.path, ".executor_info"))["fn_name"].startswith("<function")
    after = ours.look(RAW)
    assert (after.done, after.match, after.result) == (True, Match.SAME, {"value": 1})
    assert {"format_version": FORMAT_VERSION, **after.record.to_dict()} == before.record.to_dict()


def test_what_marin_left_when_it_was_killed_is_taken_over(mortal: MarinProcess, ours: Ours, gate: Path) -> None:
    begun = mortal.begin("run", prefix=ours.prefix, step=RAW, gates={RAW: str(gate)})
    path = ours.half_done(RAW)
    mortal.kill()
    assert begun.exception(60) is not None
    assert "1 computed, 0 reused, 0 failed" in ours.run(RAW)
    assert value_at(path) == {"value": 1, "by": "us"}
    assert not exists(join(path, PARTIAL))
    assert exists(join(path, ".marin/aside/0", PARTIAL))


def test_a_live_marin_is_waited_for_by_name_for_longer_than_a_lease_lives(
    quick: MarinProcess, ours: Ours, gate: Path
) -> None:
    begun = quick.begin("run", prefix=ours.prefix, step=RAW, gates={RAW: str(gate)})
    path = ours.half_done(RAW)
    run = ours.start(RAW)
    said = read_until(run, "waiting, as it is being computed by")
    assert read_json(join(path, ".executor_status.lock"))["worker_id"] in said
    with pytest.raises(subprocess.TimeoutExpired):
        run.wait(2 * TTL_S)
    gate.unlink()
    assert begun.result(60) == path
    assert "0 computed, 1 reused, 0 failed" in finished(run)
    assert calls(ours.prefix, "us") == []


def test_marin_waits_for_our_live_lease_and_runs_nothing(marin: MarinProcess, ours: Ours, gate: Path) -> None:
    run = ours.start(RAW, gates={RAW: str(gate)})
    path = ours.half_done(RAW)
    theirs = marin.begin("run", prefix=ours.prefix, step=RAW)
    wait_until(lambda: exists(join(path, ".executor_info")), "marin-core to have begun")
    gate.unlink()
    assert "1 computed, 0 reused, 0 failed" in finished(run)
    assert theirs.result(120) == path
    assert calls(ours.prefix, "marin") == []
    assert value_at(path)["by"] == "us"


def test_what_we_left_when_we_were_killed_is_completed_by_marin(quick: MarinProcess, ours: Ours, gate: Path) -> None:
    run = ours.start(RAW, gates={RAW: str(gate)})
    path = ours.half_done(RAW)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    assert quick.ask("run", prefix=ours.prefix, step=RAW) == path
    assert "0 computed, 1 reused, 0 failed" in ours.run(RAW)
    assert value_at(path) == {"value": 1, "by": "marin"}


def test_marin_sees_our_lease_in_a_bucket_as_held(marin: MarinProcess, ours_in_a_bucket: Ours, gate: Path) -> None:
    ours = ours_in_a_bucket
    run = ours.start(RAW, gates={RAW: str(gate)})
    path = ours.half_done(RAW)
    assert marin.ask("look", path=path) == {"status": "RUNNING", "held": True, "taken": False}
    gate.unlink()
    finished(run)
    assert marin.ask("look", path=path) == {"status": "SUCCESS", "held": False, "taken": True}
    assert "0 computed, 1 reused, 0 failed" in ours.run(RAW)

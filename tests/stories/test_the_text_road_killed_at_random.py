"""`kill -9` of the run or of a worker, again and again: documents and attributes are as if nothing had been."""

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from running import ROOT, start_script, wait_until
from toy_pipeline import steps

from marin_resources.storage.files import list_files

SCRIPT = ROOT / "tests/support/toy_pipeline.py"
SEED = 4
NOT_OURS = ("ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent")
"""Ray's own processes: with an agent its whole node dies."""


@dataclass
class Road:
    """Runs of the road on one prefix, and the shards that were finished whenever one was killed."""

    prefix: Path
    home: Path
    finished: dict[Path, int] = field(default_factory=dict)

    def start(self) -> subprocess.Popen[str]:
        self.home.mkdir(parents=True, exist_ok=True)
        return start_script(SCRIPT, env={"MARIN_PREFIX": str(self.prefix), "DAGSTER_HOME": str(self.home)})

    def notes(self) -> dict[Path, int]:
        """Note of a finished shard -> when it was written."""
        found: dict[Path, int] = {}
        for note in self.prefix.glob("road/**/.marin/shards/*/*.json"):
            if not note.name.startswith("."):
                found[note] = note.stat().st_mtime_ns
        return found

    def remember(self) -> None:
        self.finished |= self.notes()

    def computed_again(self) -> list[Path]:
        """Shards that were finished twice. What a step puts aside meanwhile is left out: it goes at the step's end."""
        now = self.notes()
        again = [note for note, at in self.finished.items() if now[note] != at]
        return [note for note in again if not any(name.startswith(".") for name in outputs_of(note))]

    def half_written(self) -> list[Path]:
        """Files that were never finished, but for marks of attempts: a worker that is killed at its end may leave one,
        which no reader takes for anything."""
        return [path for path in self.prefix.rglob("*.tmp") if path.parent.name != "attempts"]

    def data(self) -> dict[str, bytes]:
        made = (path for name in sorted(step.name for step in steps()) for path in self.prefix.glob(f"{name}-??????"))
        files = (Path(file) for path in made for file in list_files(str(path)))
        return {str(file.relative_to(self.prefix)): file.read_bytes() for file in files}


def outputs_of(note: Path) -> list[str]:
    return list(json.loads(note.read_text())["outputs"])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    root = tmp_path_factory.mktemp("undisturbed")
    road = Road(root / "prefix", root / "dagster")
    finish(road.start())
    return road.data()


@pytest.mark.long
@pytest.mark.parametrize("kills", [20])
def test_the_next_run_ends_with_the_same_bytes_and_computes_no_finished_shard_again(
    kills: int, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    rng = random.Random(SEED)
    left, rounds = kills, 0
    while left:
        rounds += 1
        road = Road(tmp_path / f"prefix{rounds}", tmp_path / f"dagster{rounds}")
        while left and kill_once(road, ("run", "worker")[left % 2], rng):
            left -= 1
        finish(road.start())
        assert road.data() == undisturbed
        assert road.computed_again() == []
        assert road.half_written() == []


def kill_once(road: Road, victim: str, rng: random.Random) -> bool:
    """Run until some more shards are finished and kill; whether there was something to kill still."""
    run = road.start()
    target = len(road.notes()) + rng.randrange(1, 25)
    wait_until(lambda: len(road.notes()) >= target or run.poll() is not None, "shards", timeout_s=300)
    road.remember()
    if run.poll() is not None:
        return False
    if victim == "worker" and (worker := next(busy_workers(run.pid, rng), None)):
        worker.kill()
        finish(run)
        return True
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    return True


def busy_workers(pid: int, rng: random.Random) -> Iterator[psutil.Process]:
    workers = psutil.Process(pid).children(recursive=True)
    rng.shuffle(workers)
    for worker in workers:
        try:
            name = worker.cmdline()[:1]
        except psutil.NoSuchProcess:
            continue
        if name and name[0].startswith("ray::") and not name[0].startswith(NOT_OURS):
            yield worker


def finish(run: subprocess.Popen[str]) -> None:
    output, _ = run.communicate(timeout=1200)
    assert run.returncode == 0, output
    assert "0 failed" in output

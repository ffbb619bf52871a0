"""Two users of one machine and one prefix: one who may only read it, and two who share it by a group."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import wait_until
from two_people import LAB, folder_for_all, person, why_not

ADA, BOB = 12001, 12002
pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(why_not()), reason=why_not())]
EXPERIMENT = """
import os, pathlib, time
from dataclasses import dataclass
from marin_assets import THIS_OUTPUT_PATH, Step, executor_main

GATE = os.environ.get("GATE", "")

@dataclass(frozen=True, kw_only=True)
class Config:
    output_path: str = THIS_OUTPUT_PATH

def write(config):
    "As a library does: folders and files by the umask of the process."
    folder = pathlib.Path(config.output_path, "parts")
    folder.mkdir(exist_ok=True)
    with open(folder / "users.txt", "a") as file:
        print(os.getuid(), file=file, flush=True)

def write_and_fail(config):
    write(config)
    if GATE:
        raise RuntimeError("the gate is closed")

def write_and_wait(config):
    write(config)
    while GATE and os.path.exists(GATE):
        time.sleep(0.02)

if __name__ == "__main__":
    executor_main([
        Step(name="lab/plain", fn=write, config=Config()),
        Step(name="lab/fails", fn=write_and_fail, config=Config()),
        Step(name="lab/resumes", fn=write_and_fail, config=Config(), resumable=True),
        Step(name="lab/waits", fn=write_and_wait, config=Config()),
    ])
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_for_all() as folder:
        (folder / "experiment.py").write_text(EXPERIMENT)
        yield folder


def users(prefix: Path, name: str) -> list[int]:
    """The users who have computed the output, of which the last has begun it again, or has resumed it."""
    [path] = prefix.glob(f"{name}-??????/parts/users.txt")
    return list(map(int, path.read_text().split()))


def test_who_may_only_read_reuses_all_and_is_refused_in_a_sentence_before_anything_starts(folder: Path) -> None:
    prefix = folder / "outputs"
    prefix.mkdir()
    os.chown(prefix, ADA, ADA)
    ada, bob = person(folder, "ada", ADA, prefix), person(folder, "bob", BOB, prefix)
    hello = ("-m", "marin_assets.experiments.two_steps")
    assert "1 computed" in ada.marin("run", "two_steps", "data").text

    refused = bob.run(*hello)
    assert refused.code == 2
    assert len(refused.text.splitlines()) == 1, refused.text
    for part in ("'two_steps/stats'", str(prefix), f"written by user {BOB}", f"of user {ADA}", "marin adopt"):
        assert part in refused.text
    in_dagster = bob.run(*materialize("two_steps/data,two_steps/stats"))
    assert in_dagster.code == 1
    assert f"Step 'two_steps/stats' cannot be computed: '{prefix}/two_steps' cannot be written" in in_dagster.text
    assert "two_steps/data: reused" in in_dagster.text

    assert "1 computed, 1 reused" in ada.run(*hello).text
    reused = bob.run(*hello)
    assert reused.code == 0, reused.text
    assert "0 computed, 2 reused, 0 failed" in reused.text
    [lost] = [line for line in reused.text.splitlines() if "not kept" in line]
    assert lost.startswith("experiment: its record is not kept")
    for words in (
        ("run", "two_steps"),
        ("materialize", "two_steps"),
        ("plan", "two_steps"),
        ("run", "two_steps", "--dry-run"),
        ("list",),
        *((verb, "two_steps/stats") for verb in ("status", "path", "logs", "explain", "cost", "tree", "verify")),
        ("diff", *map(str, prefix.glob("experiments/*.json"))),
        ("gc",),
        ("doctor",),
    ):
        done = bob.marin(*words)
        assert done.code == 0, (words, done.text)
        assert "Traceback" not in done.text
    assert bob.run(*materialize("two_steps/data,two_steps/stats")).code == 0
    for words in (
        ("pin", "two_steps/data", "--why", "mine"),
        ("run", "two_steps", "--force", "stats"),
        ("gc", "two_steps", "--keep-days", "0", "--collect", "--yes"),
    ):
        done = bob.marin(*words)
        assert "Traceback" not in done.text, (words, done.text)
    assert {path.stat().st_uid for path in prefix.rglob("*")} == {ADA}

    own = person(folder, "bob's own", BOB, folder / "bob's own/outputs")
    [theirs] = prefix.glob("two_steps/data-??????")
    assert own.marin("adopt", "two_steps/data", "--from", str(theirs), "--why", "Ada's").code == 0
    assert "1 computed, 1 reused" in own.run(*hello).text


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_group_computes_resumes_takes_over_and_removes_each_others_outputs(folder: Path, umask: int) -> None:
    prefix = folder / "outputs"
    prefix.mkdir()
    os.chown(prefix, ADA, LAB)
    prefix.chmod(0o2775)
    ada, bob = (
        person(folder, name, uid, prefix, umask=umask, in_lab=True) for name, uid in (("ada", ADA), ("bob", BOB))
    )
    script, gate = str(folder / "experiment.py"), folder / "gate"
    gate.touch()
    failed = ada.run(script, "--run-only", "plain|fails|resumes", GATE=str(gate))
    assert "1 computed, 0 reused, 2 failed" in failed.text, failed.text
    killed = ada.start(script, "--run-only", "waits", GATE=str(gate))
    wait_until(lambda: list(prefix.glob("lab/waits-*/parts/users.txt")), "the step that waits", timeout_s=120)
    held = bob.run(script, "--run-only", "waits", "--fail-if-held")
    assert "is being computed by" in held.text, held.text
    ada.kill(killed)
    end_of_ray = f"marin-ray-{ADA}"
    wait_until(lambda: not processes_with(end_of_ray), "the end of Ada's processes", timeout_s=120)

    everything = bob.run(script)
    assert "3 computed, 1 reused, 0 failed" in everything.text, everything.text
    assert users(prefix, "lab/plain") == [ADA]
    assert users(prefix, "lab/fails") == users(prefix, "lab/waits") == [BOB]
    assert users(prefix, "lab/resumes") == [ADA, BOB]
    assert "0 computed, 4 reused" in ada.run(script).text
    assert private_of(prefix) == []

    for path in prefix.glob("experiments/*.json"):
        path.unlink()
    collected = bob.marin("gc", "lab", "--keep-days", "0", "--collect", "--yes", "--why", "old")
    assert "4 collected" in collected.text, collected.text
    for note in prefix.glob(".marin/collected/**/*.json"):
        note.write_text(json.dumps({**json.loads(note.read_text()), "until": "2020-01-01T00:00:00+00:00"}))
    purged = ada.marin("gc", "--purge", "--yes")
    assert "4 removed" in purged.text, purged.text
    raw = prefix / "raw"
    raw.mkdir()
    (raw / "numbers.json").write_text("[1, 2]")
    assert ada.marin("adopt", "two_steps/data", "--from", "raw", "--why", "by hand").code == 0
    assert "1 computed, 1 reused" in bob.marin("run", "two_steps").text
    assert bob.marin("adopt", "two_steps/data", "--undo").code == 0
    assert "shared with the group" in ada.marin("doctor").text
    assert private_of(prefix) == []


def materialize(selection: str) -> tuple[str, ...]:
    return ("-m", "dagster", "asset", "materialize", "-m", "marin_assets.definitions", "--select", selection)


def processes_with(text: str) -> list[str]:
    """The processes with this text in their command line."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().decode(errors="replace"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [line for line in lines if text in line]


def private_of(prefix: Path) -> list[str]:
    """What users have created below the prefix that the group may not change."""
    paths = (path for path in prefix.rglob("*") if path.stat().st_uid in (ADA, BOB))
    return [
        f"{path} {stat.filemode(path.stat().st_mode)}"
        for path in paths
        if path.stat().st_gid != LAB or path.stat().st_mode & 0o060 != 0o060
    ]

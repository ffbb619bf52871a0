"""Two clusters in two regions, with a bucket each: steps go where they belong, and nothing is computed twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import object_stores
import pytest
from cluster_runs import read_until
from fleets import write_catalogue
from ray_cluster import Cluster
from running import ROOT, start_script, wait_until

from marin_resources.storage.files import names_in, read_bytes, read_json, sizes_below, write_bytes
from marin_resources.storage.output.verify import verify_output
from marin_resources.storage.transfer.budget import spent

pytestmark = pytest.mark.long

EXPERIMENT = """
import sys
sys.path.insert(0, {support!r})
from region_steps import RegionConfig, join_texts
from marin_assets import InputName, Step, executor_main, output_path_of, versioned
from marin_resources.hardware.resources import tpu

def step(name, *reads, gate="", **of_step):
    config = RegionConfig(text=versioned(name), input_paths=list(reads), calls={calls!r}, gate=gate)
    return Step(name=name, fn=join_texts, own_job=True, config=config, **of_step)

clean = step("clean", InputName.hardcoded("raw/web"), gate={gate!r})
train = step("train", output_path_of(clean), resources=tpu("v4-8"))
everything = [step("report", output_path_of(train), output_path_of(clean))]
only = sys.argv.pop(1) if sys.argv[1:2] in (["--clean"], ["--theirs"]) else None
theirs = [step("theirs", {theirs!r})]
executor_main({{"--clean": [clean], "--theirs": theirs, None: everything}}[only])
"""
RAW = b"x" * 200_000


@dataclass(frozen=True)
class World:
    central: str
    """Prefix of the region us-central2, which is the home."""
    east: str
    script: Path
    gate: Path
    calls_file: Path
    env: dict[str, str]

    def run(self, *options: str, fails: bool = False, **env: str) -> str:
        """What a run has printed, in one line."""
        run = self.start(*options, **env)
        said = run.communicate(timeout=180)[0]
        assert run.returncode == fails, said
        return " ".join(said.split())

    def other_way_round(self) -> dict[str, str]:
        """The variables of a run of another deployment, for which moving costs next to nothing: it prefers central."""
        return {"DAGSTER_HOME": f"{self.env['DAGSTER_HOME']}-2", "MARIN_MIRROR_PRICES": ""}

    def start(self, *options: str, **env: str) -> subprocess.Popen[str]:
        return start_script(self.script, *options, env={**self.env, **env})

    def calls(self) -> list[dict[str, object]]:
        text = self.calls_file.read_text() if self.calls_file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def path(self, prefix: str, name: str) -> str:
        [found] = [each for each in names_in(prefix) if each.startswith(f"{name}-")]
        return f"{prefix}/{found}"


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Cluster, Cluster]]:
    """One in us-central2 with a slice of a TPU, one in us-east5."""
    with Cluster(cpus=2) as central, Cluster(cpus=2) as east:
        central.add_slice("v4-8", "fake-v4-8-0")
        yield central, east


@pytest.fixture
def world(tmp_path: Path, clusters: tuple[Cluster, Cluster]) -> Iterator[World]:
    prefixes = [object_stores.gcs_prefix() for _ in range(3)]
    central, east, west = prefixes
    write_bytes(f"{east}/raw/web/a.txt", RAW)
    keys = [f'address = "{each.address}"\ntoken_path = "{each.token_path}"' for each in clusters]
    catalogue = write_catalogue(tmp_path, central=central, east=east, west=west, of_central=keys[0], of_east=keys[1])
    gate, calls, script = tmp_path / "gate", tmp_path / "calls.txt", tmp_path / "experiment.py"
    support = str(ROOT / "tests" / "support")
    bucket = object_stores.gcs_bucket("EUROPE-WEST4")
    theirs = f"gs://{bucket.name}/raw"
    write_bytes(f"{theirs}/a.txt", RAW)
    script.write_text(EXPERIMENT.format(support=support, calls=str(calls), gate=str(gate), theirs=theirs))
    env = {
        "MARIN_PREFIX": central,
        "MARIN_CLUSTERS": str(catalogue),
        "MARIN_CLUSTER": "central,east",
        "MARIN_MIRROR_PRICES": "us-east5>us-central2=1000000,us-central2>us-east5=1000000",
        "DAGSTER_HOME": str(tmp_path / "home"),
        "RAY_AUTH_MODE": "token",
        "PYTHONUNBUFFERED": "1",
    }
    yield World(central=central, east=east, script=script, gate=gate, calls_file=calls, env=env)
    for prefix in prefixes:
        object_stores.forget(prefix)
    bucket.forget()


def test_steps_go_where_they_belong_and_what_is_elsewhere_is_copied_once(world: World) -> None:
    planned = world.run("--dry-run")
    assert "on east, where its inputs are" in planned
    assert "on central, the only cluster with TPU v4-8; moves 'clean' from us-east5" in planned
    done = world.run()
    assert "train: on central, the only cluster with TPU v4-8; moves 200.0 kB from us-east5" in done
    assert [call["region"] for call in world.calls()] == ["us-east5", "us-central2", "us-central2"]

    clean, home = world.path(world.east, "clean"), world.path(world.central, "clean")
    record = read_json(f"{home}/.executor_info")
    assert (record["cluster"], record["data_path"]) == ("east", clean)
    assert read_bytes(f"{clean}/text.txt") == RAW + b"clean"
    assert world.calls()[1]["inputs"] == [home], "it reads the copy in its own region, by a plain path"
    assert read_json(f"{home}/.executor_info")["data_path"] == clean
    report = world.path(world.central, "report")
    assert read_bytes(f"{report}/text.txt") == RAW + b"cleantrain" + RAW + b"cleanreport"
    assert [name for name in sizes_below(f"{world.east}") if "attempts" in name or "jobs" in name] == []
    assert spent(world.path(world.central, "train"))["bytes"] == len(RAW) + len("clean")
    for path in (clean, home, report):
        assert verify_output(path).ok

    again = world.run()
    assert "0 computed, 3 reused" in again
    assert "drift" not in again
    assert len(world.calls()) == 3


def test_a_run_that_prefers_another_region_attaches_to_the_job_that_is_there(world: World) -> None:
    world.gate.touch()
    first = world.start("--clean")
    wait_until(world.calls, "the step on the one cluster")
    second = world.start("--clean", **world.other_way_round())
    read_until(second, "attached to cluster job")
    world.gate.unlink()
    assert [run.wait(timeout=120) for run in (first, second)] == [0, 0]
    assert [call["region"] for call in world.calls()] == ["us-east5"]


def test_two_runs_that_start_together_and_prefer_different_regions_compute_a_step_once(world: World) -> None:
    runs = [world.start("--clean"), world.start("--clean", **world.other_way_round())]
    said = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert len(world.calls()) == 1


def test_a_run_that_was_killed_is_followed_by_one_that_attaches_in_the_other_region(world: World) -> None:
    world.gate.touch()
    first = world.start("--clean")
    wait_until(world.calls, "the step on the other cluster")
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = world.start("--clean")
    read_until(second, "attached to cluster job")
    world.gate.unlink()
    assert second.wait(timeout=120) == 0
    assert [call["region"] for call in world.calls()] == ["us-east5"]


def test_more_than_the_budget_is_refused_before_anything_is_submitted(world: World) -> None:
    world.run("--clean")
    said = world.run("--select", "train", fails=True, MARIN_MIRROR_BUDGET_GB="0.0001")
    assert "would go to central in us-central2 and needs 'clean' (200.0 kB, in us-east5): 200.0 kB ($186.27)" in said
    assert "its mirror budget is 100.0 kB. Read an input by mirrored(…, budget_gb=1)" in said
    assert len(world.calls()) == 1


def test_a_bucket_of_another_region_is_read_only_if_it_is_allowed_by_name(world: World) -> None:
    for options in (("--dry-run",), ()):
        said = world.run("--theirs", *options, fails=True)
        assert "which is in europe-west4. Give a path below the prefix, which comes through the mirror" in said
    assert [name for name in names_in(world.central) if name.startswith("theirs-")] == []
    bucket = said.partition("MARIN_FOREIGN_BUCKETS=")[2].partition(".")[0]
    world.run("--theirs", MARIN_FOREIGN_BUCKETS=bucket)
    assert read_bytes(f"{world.path(world.central, 'theirs')}/text.txt") == RAW + b"theirs"


def test_what_is_in_no_region_of_the_fleet_is_missing(world: World) -> None:
    said = world.run("--clean", fails=True, MARIN_CLUSTER="central", MARIN_MIRROR_PRICES="")
    assert f"needs '{world.central}/raw/web', which is not complete" in said


@pytest.mark.timeout(900)
def test_the_quickstart_is_made_in_two_regions(world: World) -> None:
    """Half of it in the one, the rest in the other: caches, models and records are read where they were not made."""
    env = {**os.environ, **world.env, "MARIN_MIRROR_PRICES": ""}

    def quickstart(*options: str, cluster: str) -> str:
        command = [sys.executable, "-m", "marin_assets.experiments.quickstart", "--scale", "tiny", *options]
        ended = subprocess.run(
            command, env={**env, "MARIN_CLUSTER": cluster}, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return " ".join(ended.stderr.split())

    assert "17 computed, 0 reused" in quickstart("--run-only", "tokenized", cluster="east,central")
    rest = quickstart(cluster="central,east")
    assert "5 computed, 17 reused, 0 failed" in rest
    assert "checkpoints/quickstart-tiny: on central, the first of central, east; moves" in rest
    assert "0 computed, 22 reused, 0 failed" in quickstart(cluster="east,central")
    assert {"tokenized", "raw"} <= set(names_in(world.east))
    assert "report" not in names_in(world.east)

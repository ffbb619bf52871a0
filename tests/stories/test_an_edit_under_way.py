"""A file that is edited between two steps of a run on a cluster changes neither the second step nor its record."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_runs import env_for, start_run
from dagster_dev import dagster_dev
from ray_cluster import Cluster
from record_fields import fields_of_record
from running import ROOT, WORKSPACE, wait_until

RECIPE = """
import os, time
from dataclasses import dataclass
from pathlib import Path
from marin_assets import THIS_OUTPUT_PATH

VALUE = {value}


@dataclass(frozen=True, kw_only=True)
class Config:
    gate: str = ""
    input_path: str = ""
    output_path: str = THIS_OUTPUT_PATH


def make(config):
    Path(config.output_path, "begun.txt").touch()
    while config.gate and os.path.exists(config.gate):
        time.sleep(0.02)
    return {{"value": VALUE}}
"""
STEPS = """
import recipe
from marin_assets import Step, output_path_of

first = Step(name="edited/first", fn=recipe.make, config=recipe.Config(gate={gate!r}), own_job={own_job})
config = recipe.Config(input_path=output_path_of(first))
second = Step(name="edited/second", fn=recipe.make, config=config, own_job={own_job})
"""
SCRIPT = "from marin_assets import executor_main\nexecutor_main([second])\n"
LOCATION = (
    "import sys\nsys.path.insert(0, {tests!r})\nfrom running import definitions_of\ndefs = definitions_of([second])\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory that is shipped, with a gate that the first step waits at."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("MARIN_CLUSTER_WORKING_DIR", str(folder))
    (tmp_path / "gate").touch()
    yield folder
    (tmp_path / "gate").unlink(missing_ok=True)


def write(folder: Path, *, own_job: bool, ends: str, name: str) -> Path:
    (folder / "recipe.py").write_text(RECIPE.format(value=1))
    steps = STEPS.format(gate=str(folder.parent / "gate"), own_job=own_job)
    (folder / name).write_text(steps + ends.format(tests=str(ROOT / "tests" / "support")))
    return folder / name


def wait_for_the_first_step(prefix: Path) -> None:
    wait_until(lambda: list(prefix.glob("edited/first-*/begun.txt")), "the first step", timeout_s=300)


def edit_between_the_steps(folder: Path, prefix: Path) -> None:
    wait_for_the_first_step(prefix)
    (folder / "recipe.py").write_text(RECIPE.format(value=2))
    (folder.parent / "gate").unlink()


def records(prefix: Path) -> list[dict[str, Any]]:
    found = [fields_of_record(str(path)) for name in ("first", "second") for path in prefix.glob(f"edited/{name}-*")]
    return [record for record in found if record is not None]


def require_unedited(prefix: Path) -> None:
    first, second = records(prefix)
    assert (first["result"], second["result"]) == ({"value": 1}, {"value": 1})
    assert first["source_digest"] == second["source_digest"]
    assert first["job"]["code"]["package"] == second["job"]["code"]["package"]


@pytest.mark.long
@pytest.mark.parametrize("own_job", [True, False], ids=["own job", "small step"])
def test_of_a_script(folder: Path, prefix: Path, dagster_home: Path, cluster: Cluster, own_job: bool) -> None:
    script = write(folder, own_job=own_job, ends=SCRIPT, name="experiment.py")
    env = env_for(prefix, dagster_home, cluster)
    run = start_run(script, env)
    edit_between_the_steps(folder, prefix)
    output, _ = run.communicate(timeout=480)
    assert run.returncode == 0, output
    require_unedited(prefix)
    assert "source" in finished(start_run(script, env)), "the next run reports the edit"


def finished(run: subprocess.Popen[str]) -> str:
    output, _ = run.communicate(timeout=480)
    assert run.returncode == 0, output
    assert "0 computed, 2 reused, 0 failed" in output
    return output


@pytest.mark.long
def test_of_a_module_that_is_removed(folder: Path, prefix: Path, dagster_home: Path, cluster: Cluster) -> None:
    run = start_run(
        write(folder, own_job=False, ends=SCRIPT, name="experiment.py"), env_for(prefix, dagster_home, cluster)
    )
    wait_for_the_first_step(prefix)
    (folder / "recipe.py").unlink()
    (folder.parent / "gate").unlink()
    output, _ = run.communicate(timeout=480)
    assert run.returncode == 0, output
    require_unedited(prefix)


@pytest.mark.long
def test_of_a_run_of_dagster_dev(
    folder: Path, prefix: Path, dagster_home: Path, cluster: Cluster, tmp_path: Path
) -> None:
    write(folder, own_job=False, ends=LOCATION, name="location.py")
    (folder / "workspace.yaml").write_text(WORKSPACE.format(folder=str(folder)))
    with dagster_dev(
        folder / "workspace.yaml", tmp_path / "dagster.log", env_for(prefix, dagster_home, cluster)
    ) as dev:
        run = dev.launch("edited/first", "edited/second")
        edit_between_the_steps(folder, prefix)
        ended = lambda: dev.status(run) in ("SUCCESS", "FAILURE", "CANCELED")  # noqa: E731
        wait_until(ended, "the run to end", timeout_s=300)
        assert dev.status(run) == "SUCCESS", dev.messages(run)
    require_unedited(prefix)

"""Runs and backfills that are launched at the webserver carry the user whom the proxy names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import dagster as dg
import pytest
from person import Person
from running import wait_until

from marin_resources.orchestrator.users import HEADER, TAG
from marin_resources.ray_tpu.cluster.local.head import free_ports

LOCATION = """
import dagster as dg

@dg.asset
def made() -> None: ...

defs = dg.Definitions(assets=[made], jobs=[dg.define_asset_job("make")])
"""
SETTINGS = """
telemetry: {enabled: false}
run_coordinator:
  module: marin_resources.orchestrator.users
  class: UserRunCoordinator
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    home = tmp_path_factory.mktemp("home")
    (home / "dagster.yaml").write_text(SETTINGS)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@pytest.fixture(scope="module")
def webserver(instance: dg.DagsterInstance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    file = tmp_path_factory.mktemp("code") / "location.py"
    file.write_text(LOCATION)
    [port] = free_ports(1)
    command = ["-m", "marin_resources.orchestrator.webserver", "-h", "127.0.0.1", "-p", str(port), "-f", str(file)]
    environment = {**os.environ, "DAGSTER_HOME": instance.root_directory}
    process = subprocess.Popen([sys.executable, *command], env=environment, stderr=subprocess.DEVNULL)
    person = Person(f"http://127.0.0.1:{port}")
    try:
        wait_until(lambda: answers(person), "the webserver answers", timeout_s=120)
        yield person
    finally:
        process.terminate()
        process.wait()


def answers(person: Person) -> bool:
    try:
        return bool(person.ask("{ version }"))
    except OSError:
        return False


@pytest.mark.parametrize(
    ("user", "claimed", "tag"),
    [
        ("ada@lab.example", None, "ada@lab.example"),
        ("ada@lab.example", "root", "ada@lab.example"),
        (None, "me", "me"),
        (None, None, None),
    ],
)
def test_a_run_has_the_user_of_its_request(
    instance: dg.DagsterInstance, webserver: Person, user: str | None, claimed: str | None, tag: str | None
) -> None:
    tags = {} if claimed is None else {TAG: claimed}
    launched = webserver.launch("make", tags=tags, headers=said_by(user), location="location.py")
    run = instance.get_run_by_id(launched["run"]["runId"])
    assert run is not None
    assert run.status is dg.DagsterRunStatus.QUEUED
    assert run.tags.get(TAG) == tag


@pytest.mark.parametrize("user", ["ada@lab.example", None])
def test_a_backfill_has_it_too(instance: dg.DagsterInstance, webserver: Person, user: str | None) -> None:
    launched = webserver.backfill("made", headers=said_by(user))
    backfill = instance.get_backfill(launched["backfillId"])
    assert backfill is not None
    assert backfill.tags.get(TAG) == user


def said_by(user: str | None) -> dict[str, str]:
    """What the proxy adds; nothing without a proxy."""
    return {} if user is None else {HEADER.lower(): user}

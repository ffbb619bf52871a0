"""Runs and backfills that are launched at the webserver carry the user whom the proxy names."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import pytest
import uvicorn
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster_dev import LAUNCH
from dagster_webserver.app import create_app_from_workspace_process_context
from person import Person, launch_of
from running import wait_until

from marin_resources.dagster_fixes.run_attribution import HEADER, TAG, UserProcessContext
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
  module: marin_resources.dagster_fixes.run_attribution
  class: AttributingRunCoordinator
"""


LOOKS = "{ permissions { permission value } }"
BEHIND_A_LOGIN = """\
  config: {requires_user: true}
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    with instance_with(SETTINGS, tmp_path_factory) as instance:
        yield instance


@pytest.fixture(scope="module")
def webserver(instance: dg.DagsterInstance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    with webserver_of(instance, tmp_path_factory) as webserver:
        yield webserver


@pytest.fixture(scope="module")
def behind_a_login(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    with instance_with(SETTINGS + BEHIND_A_LOGIN, tmp_path_factory) as instance:
        yield instance


@pytest.fixture(scope="module")
def hidden(behind_a_login: dg.DagsterInstance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """At the webserver behind the proxy, past the proxy."""
    with served_here(behind_a_login, UserProcessContext, tmp_path_factory) as webserver:
        yield webserver


@contextmanager
def instance_with(settings: str, folders: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    home = folders.mktemp("home")
    (home / "dagster.yaml").write_text(settings)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@contextmanager
def webserver_of(instance: dg.DagsterInstance, folders: pytest.TempPathFactory) -> Iterator[Person]:
    """The command `marin-webserver`."""
    file = folders.mktemp("code") / "location.py"
    file.write_text(LOCATION)
    [port] = free_ports(1)
    command = ["-m", "marin_resources.dagster_fixes.webserver", "-h", "127.0.0.1", "-p", str(port), "-f", str(file)]
    environment = {**os.environ, "DAGSTER_HOME": instance.root_directory}
    process = subprocess.Popen([sys.executable, *command], env=environment, stderr=subprocess.DEVNULL)
    person = Person(f"http://127.0.0.1:{port}")
    try:
        wait_until(lambda: answers(person), "the webserver answers", timeout_s=120)
        yield person
    finally:
        process.terminate()
        process.wait()


@contextmanager
def served_here(
    instance: dg.DagsterInstance, workspace: type[WorkspaceProcessContext], folders: pytest.TempPathFactory
) -> Iterator[Person]:
    """A webserver and its code location in this process, where they start in a second."""
    file = folders.mktemp("code") / "location.py"
    file.write_text(LOCATION)
    loaded = LoadableTargetOrigin(executable_path=sys.executable, python_file=str(file))
    origin = InProcessCodeLocationOrigin(loadable_target_origin=loaded, location_name="location.py")
    [port] = free_ports(1)
    with workspace(instance=instance, workspace_load_target=InProcessWorkspaceLoadTarget([origin])) as context:
        app = create_app_from_workspace_process_context(context)
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None))
        thread = threading.Thread(target=server.run)
        thread.start()
        person = Person(f"http://127.0.0.1:{port}")
        try:
            wait_until(lambda: answers(person), "the webserver answers")
            yield person
        finally:
            server.should_exit = True
            thread.join()


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


def test_behind_a_login_who_has_a_name_launches(behind_a_login: dg.DagsterInstance, hidden: Person) -> None:
    launched = hidden.launch("make", tags={TAG: "eve"}, headers=said_by("ada@lab.example"), location="location.py")
    run = behind_a_login.get_run_by_id(launched["run"]["runId"])
    assert run is not None
    assert run.tags[TAG] == "ada@lab.example"
    assert hidden.backfill("made", headers=said_by("ada@lab.example"))["__typename"] == "LaunchBackfillSuccess"


@pytest.mark.parametrize("user", [None, ""])
def test_behind_a_login_a_request_without_a_name_changes_nothing(
    behind_a_login: dg.DagsterInstance, hidden: Person, user: str | None
) -> None:
    before = behind_a_login.get_runs_count(), len(behind_a_login.get_backfills())
    launched = hidden.launch("make", tags={TAG: "eve"}, headers=said_by(user), location="location.py")
    assert launched["__typename"] == "UnauthorizedError"
    assert hidden.backfill("made", headers=said_by(user))["__typename"] == "UnauthorizedError"
    assert hidden.post("/report_asset_materialization/made", {}, **said_by(user)).status_code in (401, 403)
    assert not any(each["value"] for each in hidden.ask(LOOKS, headers=said_by(user))["permissions"])
    assert (behind_a_login.get_runs_count(), len(behind_a_login.get_backfills())) == before


def test_the_queue_refuses_a_run_of_nobody_at_dagsters_own_webserver_too(
    behind_a_login: dg.DagsterInstance, tmp_path_factory: pytest.TempPathFactory
) -> None:
    asked = {"p": launch_of("make", {}, "location.py")}
    with served_here(behind_a_login, WorkspaceProcessContext, tmp_path_factory) as bare:
        refused = bare.post("/graphql", {"query": LAUNCH, "variables": asked}).json()["data"]["launchRun"]
    assert refused["__typename"] == "PythonError"
    assert "has no header 'X-Marin-User'" in refused["message"]
    [run] = behind_a_login.get_runs(limit=1)
    assert run.status is dg.DagsterRunStatus.FAILURE


def said_by(user: str | None) -> dict[str, str]:
    """What the proxy adds; nothing without a proxy."""
    return {} if user is None else {HEADER.lower(): user}

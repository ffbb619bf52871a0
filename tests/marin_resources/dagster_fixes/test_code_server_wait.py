"""A launch while the code server is restarted: it waits, and succeeds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import grpc
import pytest
from dagster._core.errors import DagsterUserCodeUnreachableError
from person import Person
from running import wait_until

from marin_resources.dagster_fixes import code_server_wait
from marin_resources.dagster_fixes.code_server_wait import wait_for_code_server
from marin_resources.ray_tpu.cluster.local.head import free_ports

LOCATION = """
import dagster as dg

@dg.asset
def made() -> None: ...

defs = dg.Definitions(assets=[made], jobs=[dg.define_asset_job("make")])
"""
SETTINGS = """
telemetry: {enabled: false}
run_coordinator: {module: dagster, class: QueuedRunCoordinator}
"""
WORKSPACE = "load_from: [{grpc_server: {socket: %s, location_name: marin}}]\n"


class Away(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code


def client_that_fails(times: int, code: grpc.StatusCode) -> tuple[type, list[str]]:
    asked: list[str] = []

    class Client:
        def _query(self, method: str, **_: Any) -> str:
            asked.append(method)
            if len(asked) <= times:
                raise DagsterUserCodeUnreachableError("Could not reach user code server.") from Away(code)
            return "answer"

        async def _gen_query(self, method: str, **named: Any) -> str:
            return Client._query(self, method, **named)

    wait_for_code_server(Client)
    return Client, asked


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_server_wait, "POLL_S", 0.01)


def test_what_a_launch_asks_is_asked_again_until_the_code_server_is_back() -> None:
    client, asked = client_that_fails(3, grpc.StatusCode.UNAVAILABLE)
    assert client()._query("ExecutionPlanSnapshot") == "answer"
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("ExternalRepository", grpc.StatusCode.UNAVAILABLE),
        ("ExecutionPlanSnapshot", grpc.StatusCode.UNKNOWN),
        ("ExecutionPlanSnapshot", grpc.StatusCode.DEADLINE_EXCEEDED),
    ],
)
def test_what_a_page_asks_and_other_failures_are_not(method: str, code: grpc.StatusCode) -> None:
    client, asked = client_that_fails(1, code)
    with pytest.raises(DagsterUserCodeUnreachableError):
        client()._query(method)
    assert asked == [method]


def test_one_that_stays_away_is_an_error_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_server_wait, "PATIENCE_S", 0.05)
    client, asked = client_that_fails(10**6, grpc.StatusCode.UNAVAILABLE)
    with pytest.raises(DagsterUserCodeUnreachableError):
        client()._query("ExecutionPlanSnapshot")
    assert len(asked) > 1


class CodeServer:
    def __init__(self, folder: Path) -> None:
        (folder / "location.py").write_text(LOCATION)
        self.folder, self.socket = folder, str(folder / "s")
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        command = ["api", "grpc", "--socket", self.socket, "-f", str(self.folder / "location.py"), "--location-name"]
        self.process = subprocess.Popen([sys.executable, "-m", "dagster", *command, "marin"], stderr=subprocess.DEVNULL)
        return self.process

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def code_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeServer]:
    server = CodeServer(tmp_path_factory.mktemp("code"))
    yield server
    server.kill()


@pytest.mark.long
def test_a_launch_while_the_code_server_is_restarted_succeeds(code_server: CodeServer, tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text(SETTINGS)
    (tmp_path / "workspace.yaml").write_text(WORKSPACE % code_server.socket)
    [port] = free_ports(1)
    command = ["-m", "marin_resources.dagster_fixes.webserver", "-p", str(port), "-w", str(tmp_path / "workspace.yaml")]
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path)}
    webserver = subprocess.Popen([sys.executable, *command], env=environment, stderr=subprocess.DEVNULL)
    person = Person(f"http://127.0.0.1:{port}")
    try:
        wait_until(lambda: launches(person), "a launch succeeds", timeout_s=120)
        code_server.kill()
        with ThreadPoolExecutor() as threads:
            launched = [threads.submit(person.launch, "make")]
            time.sleep(13)  # Dagster gives a code server up after 10 looks, one each second
            launched.append(threads.submit(Person(person.url).launch, "make"))
            later = threading.Timer(2, code_server.start)
            later.start()
            assert [each.result()["__typename"] for each in launched] == ["LaunchRunSuccess"] * 2
            later.join()
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            assert {run.status for run in instance.get_runs()} == {dg.DagsterRunStatus.QUEUED}
    finally:
        webserver.terminate()
        webserver.wait()


def launches(person: Person) -> bool:
    try:
        return person.launch("make")["__typename"] == "LaunchRunSuccess"
    except (OSError, AssertionError):
        return False

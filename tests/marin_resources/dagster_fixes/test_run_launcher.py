"""When a run's process has died, and that a run whose code server is away can be terminated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import dagster as dg
import grpc
import pytest
from dagster._core.launcher import WorkerStatus
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._core.test_utils import create_run_for_test
from dagster._grpc.__generated__ import dagster_api_pb2, dagster_api_pb2_grpc
from dagster_homes import new_home

from marin_resources.dagster_fixes import run_launcher
from marin_resources.dagster_fixes.run_launcher import (
    LocalRunLauncher,
    is_over,
    process_of,
    process_tag,
    terminal_tag,
)
from marin_resources.host.process import start_time_s, this_process
from marin_resources.ray_tpu.cluster.local.head import free_ports

RunOf = Callable[..., dg.DagsterRun]


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(new_home(tmp_path_factory.mktemp("dagster") / "home"))) as instance:
        yield instance


@pytest.fixture
def launcher(instance: dg.DagsterInstance) -> LocalRunLauncher:
    launcher = LocalRunLauncher()
    launcher.register_instance(instance)
    return launcher


@pytest.fixture
def run_of(instance: dg.DagsterInstance) -> RunOf:
    """Stores a run that a process executes, with further tags."""

    def run(process: str, port: int | None = None, **tags: str) -> dg.DagsterRun:
        origin = None
        if port is not None:
            location = GrpcServerCodeLocationOrigin("127.0.0.1", port=port, location_name="marin")
            origin = RemoteRepositoryOrigin(location, "__repository__").get_job_origin("job")
        stored = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, remote_job_origin=origin)
        instance.add_run_tags(stored.run_id, {**process_tag(stored.run_id, process), **tags})
        found = instance.get_run_by_id(stored.run_id)
        assert found is not None
        return found

    return run


def of(process: subprocess.Popen[bytes]) -> str:
    return f"{os.uname().nodename}/{process.pid}/{start_time_s(process.pid):.2f}"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def dead() -> str:
    """A process that has died."""
    with subprocess.Popen(["sleep", "600"]) as process:
        name = of(process)
        process.kill()
    return name


@contextmanager
def code_server(port: int) -> Iterator[None]:
    """A code server that answers, and serves nothing."""

    class Servicer(dagster_api_pb2_grpc.DagsterApiServicer):
        def Ping(self, request: Any, context: Any) -> Any:
            return dagster_api_pb2.PingReply(echo=request.echo)

    server = grpc.server(ThreadPoolExecutor(2))
    dagster_api_pb2_grpc.add_DagsterApiServicer_to_server(Servicer(), server)
    assert server.add_insecure_port(f"127.0.0.1:{port}") == port
    server.start()
    yield
    server.stop(None).wait()


def test_a_run_is_failed_when_its_process_has_died(
    launcher: LocalRunLauncher, run_of: RunOf, sleeper: subprocess.Popen[bytes], dead: str
) -> None:
    assert launcher.supports_check_run_worker_health
    health = launcher.check_run_worker_health(run_of(dead))
    assert health.status is WorkerStatus.FAILED
    assert health.msg is not None
    assert health.msg.startswith("The process of this run is gone.")
    assert launcher.check_run_worker_health(run_of(of(sleeper))).status is WorkerStatus.RUNNING


def test_a_run_of_another_machine_or_without_a_process_is_not_checked(
    launcher: LocalRunLauncher, instance: dg.DagsterInstance, run_of: RunOf, dead: str
) -> None:
    _, pid, started = dead.split("/")
    assert launcher.check_run_worker_health(run_of(f"another-host/{pid}/{started}")).status is WorkerStatus.RUNNING
    starting = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED)
    assert launcher.check_run_worker_health(starting).status is WorkerStatus.RUNNING


def test_a_copy_of_the_tags_names_no_process(instance: dg.DagsterInstance, run_of: RunOf, dead: str) -> None:
    """As Dagster copies the tags of a run to its re-execution."""
    again = create_run_for_test(instance, tags=run_of(dead).tags, status=dg.DagsterRunStatus.STARTED)
    assert process_of(again) is None
    assert not is_over(again)


def test_a_dead_run_of_a_code_server_that_is_away_is_failed_when_that_has_answered_for_a_while(
    launcher: LocalRunLauncher, run_of: RunOf, dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    [port] = free_ports(1)
    run = run_of(dead, port)
    away = launcher.check_run_worker_health(run)
    assert (away.status, away.msg) == (WorkerStatus.RUNNING, "Its process is gone; its code server is waited for.")
    with code_server(port):
        assert launcher.check_run_worker_health(run).status is WorkerStatus.RUNNING
        monkeypatch.setattr(run_launcher, "SETTLED_S", 0)
        assert launcher.check_run_worker_health(run).status is WorkerStatus.FAILED


def test_it_is_failed_at_last_without_the_code_server(
    launcher: LocalRunLauncher, run_of: RunOf, dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(dead, free_ports(1)[0])
    assert launcher.check_run_worker_health(run).status is WorkerStatus.RUNNING
    monkeypatch.setattr(run_launcher, "PATIENCE_S", 0)
    assert launcher.check_run_worker_health(run).status is WorkerStatus.FAILED


@pytest.mark.parametrize("is_launched", [True, False], ids=["its code server is away", "no code server is known"])
def test_terminate_interrupts_the_process_of_the_run(
    launcher: LocalRunLauncher, run_of: RunOf, sleeper: subprocess.Popen[bytes], is_launched: bool
) -> None:
    info = {GRPC_INFO_TAG: json.dumps({"host": "127.0.0.1", "port": free_ports(1)[0]})} if is_launched else {}
    assert launcher.terminate(run_of(of(sleeper), **info).run_id)
    assert sleeper.wait(10) == -signal.SIGINT


def test_a_run_in_a_terminal_is_not_interrupted(
    launcher: LocalRunLauncher, instance: dg.DagsterInstance, run_of: RunOf
) -> None:
    run = run_of(this_process())
    instance.add_run_tags(run.run_id, terminal_tag(run.run_id))
    assert not launcher.terminate(run.run_id)


def test_a_run_whose_process_and_code_server_are_gone_is_not_terminated(
    launcher: LocalRunLauncher, run_of: RunOf, dead: str
) -> None:
    info = {GRPC_INFO_TAG: json.dumps({"host": "127.0.0.1", "port": free_ports(1)[0]})}
    with pytest.raises(dg.DagsterError, match="user code"):
        launcher.terminate(run_of(dead, **info).run_id)

"""`marin-webserver` is Dagster's webserver with our workspace, and with launches that wait for their code server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from dagster._grpc import server_watcher
from dagster._grpc.client import DagsterGrpcClient
from dagster_webserver import cli
from dagster_webserver.webserver import DagsterWebserver

from marin_resources.dagster_fixes import webserver
from marin_resources.dagster_fixes.run_attribution import UserProcessContext


class Served:
    """What Dagster's command would serve."""

    def __init__(self) -> None:
        self.context: Any = None
        self.port: int | None = None
        self.replaced: list[Any] = []

    def __call__(self, workspace_process_context: Any, host: str | None, port: int, *_: Any, **__: Any) -> None:
        self.context, self.port = workspace_process_context, port
        self.replaced = replaced()


def replaced() -> list[Any]:
    """What of Dagster's clients is ours in the command."""
    return [DagsterGrpcClient._query, DagsterGrpcClient._gen_query, server_watcher.MAX_RECONNECT_ATTEMPTS]


@pytest.fixture
def served(dagster_home: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    """Runs the command with a workspace that is empty; in the place of a server is the answer. Dagster is itself after
    the test."""
    monkeypatch.setattr(cli, "WorkspaceProcessContext", cli.WorkspaceProcessContext)
    monkeypatch.setattr(DagsterWebserver, "build_routes", DagsterWebserver.build_routes)
    for name in ("_query", "_gen_query"):
        monkeypatch.setattr(DagsterGrpcClient, name, getattr(DagsterGrpcClient, name))
    monkeypatch.setattr(server_watcher, "MAX_RECONNECT_ATTEMPTS", server_watcher.MAX_RECONNECT_ATTEMPTS)
    monkeypatch.setattr(cli, "host_dagster_ui_with_workspace_process_context", served := Served())
    monkeypatch.setattr(sys, "argv", ["marin-webserver", "--empty-workspace", "-h", "127.0.0.1", "-p", "3999"])
    return served


def test_dagsters_command_serves_our_workspace_with_its_options(served: Served) -> None:
    before = replaced()
    with pytest.raises(SystemExit) as ended:
        webserver.main()
    assert ended.value.code in (0, None)
    assert served.port == 3999
    assert isinstance(served.context, UserProcessContext)
    assert all(ours != dagsters for ours, dagsters in zip(served.replaced, before, strict=True))

"""The webserver serves pages, plots and texts of outputs below a local prefix, in a sandbox, and nothing else."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import requests
import uvicorn
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.webserver import DagsterWebserver

from marin_resources.dagster_fixes.output_pages import COLUMN_PX, address_in_place, address_of
from marin_resources.dagster_fixes.webserver import serve_outputs
from marin_resources.orchestrator.links import link_to


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a real webserver of Dagster's with the route."""
    build = DagsterWebserver.build_routes
    serve_outputs()
    with (
        dg.instance_for_test() as instance,
        WorkspaceProcessContext(instance, EmptyWorkspaceTarget()) as context,
    ):
        app = create_app_from_workspace_process_context(context)
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        thread.join()
    DagsterWebserver.build_routes = build  # type: ignore[method-assign]


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "my outputs"
    (folder / "report/a-123456").mkdir(parents=True)
    monkeypatch.setenv("MARIN_PREFIX", str(folder))
    return folder


def test_a_report_opens_by_the_link_of_its_page_and_runs_no_script(prefix: Path, server: str) -> None:
    page = prefix / "report/a-123456/re port?.html"
    page.write_text("<script>fetch('/graphql')</script>")
    link = link_to(str(page))
    assert isinstance(link, dg.UrlMetadataValue)
    response = requests.get(f"{server}{link.url}")
    assert (response.status_code, response.text) == (200, page.read_text())
    assert response.headers["content-security-policy"] == "sandbox"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(("name", "kind"), [("loss.png", "image/png"), ("rows.jsonl", "text/plain; charset=utf-8")])
def test_a_plot_and_a_text_have_their_types(prefix: Path, server: str, name: str, kind: str) -> None:
    (prefix / "report" / name).write_bytes(b"some bytes")
    response = requests.get(f"{server}{address_of(str(prefix / 'report' / name))}")
    assert (response.content, response.headers["content-type"]) == (b"some bytes", kind)


def test_a_plot_in_place_is_as_wide_as_its_column_and_whole(prefix: Path, server: str) -> None:
    import matplotlib.figure

    wide, narrow = prefix / "report/wide.png", prefix / "report/narrow.png"
    matplotlib.figure.Figure(figsize=(11, 4), dpi=100).savefig(wide)
    matplotlib.figure.Figure(figsize=(4, 4), dpi=100).savefig(narrow)
    response = requests.get(f"{server}{address_in_place(str(wide))}")
    assert response.headers["content-type"] == "image/svg+xml"
    assert response.headers["content-security-policy"] == "sandbox"
    assert f'width="{COLUMN_PX}" height="{round(COLUMN_PX * 400 / 1100)}" viewBox="0 0 1100 400"' in response.text
    assert base64.b64encode(wide.read_bytes()).decode() in response.text
    assert requests.get(f"{server}{address_in_place(str(narrow))}").content == narrow.read_bytes()


def test_what_is_no_plot_is_served_as_it_is(prefix: Path, server: str) -> None:
    damaged = prefix / "report/damaged.png"
    damaged.write_bytes(b"\x89PNG\r\n\x1a\n")
    assert requests.get(f"{server}{address_in_place(str(damaged))}").content == damaged.read_bytes()


@pytest.mark.parametrize(
    "asked",
    [
        "../secret.txt",
        "report/../../secret.txt",
        "report/link/secret.txt",
        "/etc/hostname.txt",
        "report",
        "report/none.html",
        "report/model.safetensors",
    ],
)
def test_nothing_else_is_served(prefix: Path, server: str, asked: str) -> None:
    (prefix.parent / "secret.txt").write_text("secret")
    (prefix / "report/link").symlink_to(prefix.parent)
    (prefix / "report/model.safetensors").write_text("secret")
    prepared = requests.Request("GET", server).prepare()
    prepared.url = f"{server}/outputs/{asked.replace('..', '%2e%2e')}"  # as an attacker sends it
    response = requests.Session().send(prepared)
    assert (response.status_code, "secret" in response.text.replace(asked, "")) == (404, False)
    assert "There is no page, plot or text" in response.text


def test_dagsters_own_pages_are_as_they_were(server: str) -> None:
    assert "dagster_webserver_version" in requests.get(f"{server}/server_info").json()


@pytest.mark.parametrize("path", ["/elsewhere/report.html", "s3://bucket/report.html"])
def test_what_is_not_served_is_a_path(prefix: Path, path: str) -> None:
    assert link_to(path) == dg.MetadataValue.path(path)


def test_below_a_prefix_in_a_bucket_nothing_is_served(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    monkeypatch.setenv("MARIN_PREFIX", "gs://bucket/marin")
    response = requests.get(f"{server}/outputs/report/a.html")
    assert response.status_code == 404
    assert response.text == (
        "There is no page, plot or text 'report/a.html' below this server's prefix, gs://bucket/marin."
    )

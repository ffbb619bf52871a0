"""Bring a deployment up, check that all of it answers, remove it."""

from __future__ import annotations

import fcntl
import http.client
import json
import logging
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from postgres_server import owner

from local_deployment.layout import (
    BUCKET,
    CHECKOUT,
    DATABASE,
    EXPERIMENTS,
    ID_VARIABLE,
    DeploymentError,
    Layout,
    claim_folder,
    find_layout,
    keep_layout,
    keep_secret,
    layout_of,
    new_layout,
)
from local_deployment.proxy import apache_conf, apache_secrets, make_sessions_folder
from local_deployment.ray_head import ray_cluster
from local_deployment.services import BIN, server_of, supervisor_conf
from local_deployment.tools import install_tools
from marin_resources.ray_tpu.cluster.local.head import answers as ray_answers
from marin_resources.ray_tpu.cluster.local.processes import processes_of as cluster_processes

log = logging.getLogger(__name__)

START_TIMEOUT_S = 300.0
ANSWER_TIMEOUT_S = 10.0
POLL_S = 0.5
KEPT = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
LOADED = (
    "{workspaceOrError{... on Workspace{locationEntries{name locationOrLoadError{... on RepositoryLocation{name}}}}}}"
)
WORKSPACE = """\
load_from:
  - grpc_server:
      socket: {socket}
      location_name: marin
"""


def up(home: Path, port: int, experiments: Path = EXPERIMENTS) -> Layout:
    """Start the deployment of the folder, made if it has none. Return when all of it answers.

    `experiments`: a folder of experiments that its code location has beside the project's.

    Raises DeploymentError.
    """
    with _alone(home):
        layout = find_layout(home)
        if layout is None:
            claim_folder(home)
            _remove_remains(home)
            _require_free(port)
            layout = _make(home, port, experiments)
        elif (layout.port, layout.experiments) != (port, experiments):
            raise DeploymentError(
                f"The deployment in {str(home)!r} is at port {layout.port} with the experiments of "
                f"{str(layout.experiments)!r}; port {port} and {str(experiments)!r} are asked for. Remove it first: "
                "make deploy-local-down"
            )
        if not _supervisor_is_up(layout):
            _end_processes(layout)  # of a supervisor that was killed
            layout.supervisor.write_text(supervisor_conf(layout))
            _supervisord(layout)
        _await(layout)
        return layout


def down(home: Path) -> bool:
    """End all processes of the deployment, and remove all that it has stored. Whether there was one.

    One that is partial, or whose layout is damaged, is removed too. Raises DeploymentError for another folder.
    """
    with _alone(home):
        if not home.exists():
            return False
        claim_folder(home)
        partial = layout_of(home)
        if partial.supervisor.exists() and _supervisor_is_up(partial):
            supervisorctl(partial, "shutdown")
        _end_processes(partial)
        for folder in (partial.postgres_folder, partial.sessions_folder, partial.ray_folder):
            shutil.rmtree(folder, ignore_errors=True)  # none exists yet, or a killed process's file has just vanished
        shutil.rmtree(home)
        return True


def supervisorctl(layout: Layout, *arguments: str) -> str:
    """The answer of supervisord."""
    command = [str(BIN / "supervisorctl"), "-c", str(layout.supervisor), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def silent(layout: Layout) -> list[str]:
    """The services that do not answer."""
    checks: dict[str, Callable[[], bool]] = {
        "objects": lambda: _status(f"{layout.objects_url}/storage/v1/b?project=test") == 200,
        "ray": lambda: ray_answers(ray_cluster(layout)),
        "code, webserver": lambda: _locations(layout, "webserver") == ["marin"],
        "read_only": lambda: _locations(layout, "read_only") == ["marin"],
        "metrics": lambda: _status(f"http://127.0.0.1:{layout.ports['metrics']}/metrics") == 200,
        "browse": lambda: _status(f"http://127.0.0.1:{layout.ports['browse']}/health") == 200,
        "provider": lambda: _status(f"{layout.provider_url}/.well-known/openid-configuration") == 200,
        "proxy": lambda: _status(f"{layout.url}/health") == 200,
    }
    return [name for name, check in checks.items() if not check()]


def _make(home: Path, port: int, experiments: Path) -> Layout:
    install_tools(home)
    layout = new_layout(home, port, experiments)
    for folder in ("run", "dagster", "logs"):
        (home / folder).mkdir()
    shutil.copy(CHECKOUT / "deploy/vm/dagster.yaml", home / "dagster/dagster.yaml")
    (home / "workspace.yaml").write_text(WORKSPACE.format(socket=home / "run/code.sock"))
    (home / "apache.conf").write_text(apache_conf(layout))
    make_sessions_folder(layout)
    keep_secret(layout, "apache.conf", apache_secrets(layout))
    layout.postgres_folder.mkdir(mode=0o700)
    shutil.chown(layout.postgres_folder, *owner())
    server = server_of(layout)
    server.initialize()
    server.start()
    try:
        server.create(DATABASE)
    finally:
        server.stop()
    keep_layout(layout)
    return layout


def _remove_remains(home: Path) -> None:
    """Remove the remains of an `up` that was killed; installed tools stay."""
    partial = layout_of(home)
    _end_processes(partial)
    own = (home / name for name in ("secrets", "run", "dagster", "logs"))
    for folder in (partial.postgres_folder, partial.sessions_folder, *own):
        shutil.rmtree(folder, ignore_errors=True)


def _supervisord(layout: Layout) -> None:
    """Start supervisord in an environment of its own: no setting of the terminal's reaches a service."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    ended = subprocess.run(
        [str(BIN / "supervisord"), "-c", str(layout.supervisor)],
        env={**kept, ID_VARIABLE: layout.id},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        raise DeploymentError(f"supervisord did not start: {ended.stdout.strip()} {ended.stderr.strip()}")


def _supervisor_is_up(layout: Layout) -> bool:
    return supervisorctl(layout, "pid").strip().isdigit()


def _await(layout: Layout) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    reported: list[str] = []
    while missing := silent(layout):
        if missing != reported:
            log.info("waiting for %s", ", ".join(missing))
            reported = missing
        if time.monotonic() > deadline:
            raise DeploymentError(
                f"After {START_TIMEOUT_S:.0f} s these services do not answer: {', '.join(missing)}. Their logs are in "
                f"{str(layout.home / 'logs')!r}; `make deploy-local` waits again, `make deploy-local-down` removes all."
            )
        time.sleep(POLL_S)
    _make_bucket(layout)


def _make_bucket(layout: Layout) -> None:
    if _status(f"{layout.objects_url}/storage/v1/b/{BUCKET}") != 404:
        return
    status = _status(f"{layout.objects_url}/storage/v1/b?project=local", {"name": BUCKET})
    if status != 200:
        raise DeploymentError(f"The object storage did not make the bucket {BUCKET!r}: status {status}. Try again.")


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was closed a moment ago is free
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise DeploymentError(
                f"The proxy cannot listen at port {port} ({error}). Choose another: make deploy-local DEPLOY_PORT=8081"
            ) from None


def processes_of(layout: Layout) -> list[psutil.Process]:
    """All processes of the deployment: its services, runs, and the cluster with its jobs."""
    ours = [process for process in psutil.process_iter() if _belongs(process, layout)]
    return list({process.pid: process for process in (*ours, *cluster_processes(ray_cluster(layout)))}.values())


def _end_processes(layout: Layout) -> None:
    """Kill all of them; repeat, as a dying one may start others."""
    while processes := processes_of(layout):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=5)


def _belongs(process: psutil.Process, layout: Layout) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(ID_VARIABLE) == layout.id
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # or another user's
        return False


def _status(url: str, body: dict[str, Any] | None = None) -> int | None:
    """The status of the answer; None without one."""
    answer = _ask(url, body)
    return answer[0] if answer else None


def _locations(layout: Layout, webserver: str) -> list[str] | None:
    """The code locations that a webserver has loaded."""
    url = f"http://127.0.0.1:{layout.ports[webserver]}/graphql"
    answer = _ask(url, {"query": LOADED})
    if answer is None or answer[0] != 200:
        return None
    entries = json.loads(answer[1])["data"]["workspaceOrError"].get("locationEntries", [])
    return [entry["name"] for entry in entries if (entry["locationOrLoadError"] or {}).get("name") == entry["name"]]


def _ask(url: str, body: dict[str, Any] | None = None) -> tuple[int, bytes] | None:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"} if data else {})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through HTTP_PROXY
    try:
        with direct.open(request, timeout=ANSWER_TIMEOUT_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""
    except (OSError, http.client.HTTPException):  # not up yet
        return None


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One `up` or `down` of a deployment at a time."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{home}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

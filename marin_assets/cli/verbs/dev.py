"""Serve Dagster's UI and its daemon on this machine, until Ctrl-C: `dagster dev` with Marin's code location.

Its pages open the reports and plots of outputs below a local prefix. Runs and events are those of DAGSTER_HOME, so the
runs of scripts are shown too.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

import marin_assets
from marin_assets.cli.ports import add_port, require_free
from marin_resources.configuration.command import make_or
from marin_resources.configuration.settings import checkout, dagster_home, default_prefix, ensure_dagster_home
from marin_resources.ray_tpu.sidecar import start_sidecar

HOST = "127.0.0.1"
DEFAULT_PORT = 3000
DEV = "from marin_resources.dagster_fixes.webserver import dev; dev()"
PORT_NOTE = "marin_dev_port"
"""A file of DAGSTER_HOME, for `marin open`."""
NO_ADVICE = "ignore:Function `dev_command` is superseded"
"""Dagster advises `dg dev`, for projects that its tool dg has created."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_port(parser, DEFAULT_PORT, HOST)


def run(options: argparse.Namespace) -> int:
    """Replace this process by `dagster dev`. Raises OptionError if the port is taken."""
    require_free(HOST, options.port, "dev", maybe=make_or("dev", ""), like=make_or("dev PORT={port}", ""))
    note = Path(ensure_dagster_home(), PORT_NOTE)
    note.write_text(f"{options.port}\n")
    default_prefix()
    allow_interrupts()
    start_watchdog()
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), NO_ADVICE]))
    command = [sys.executable, "-c", DEV, "-h", HOST, "-p", str(options.port), "-w", str(workspace())]
    os.execv(command[0], command)


def ui_port() -> int:
    """The port that `marin dev` was last given in this DAGSTER_HOME, or its default."""
    try:
        return int(Path(dagster_home(), PORT_NOTE).read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return DEFAULT_PORT


def allow_interrupts() -> None:
    """Undo that Ctrl-C is ignored: a shell's script starts what it puts into the background in this way.

    Dagster ends its services by interrupts, and its SIGTERM does what SIGINT does: it would ignore both.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_watchdog() -> None:
    """Start the process that ends Dagster's services if this one is killed."""
    until_end, end = os.pipe()
    start_sidecar("marin_resources.instance.dev_watchdog_process", [os.getpid()], stdin=until_end)
    os.close(until_end)
    os.set_inheritable(end, True)  # `dagster dev` holds it, and passes it to no child


def workspace() -> Path:
    """The project's workspace.yaml: that of the checkout, of which the wheel has a copy."""
    root = checkout()
    return root / "workspace.yaml" if root is not None else Path(marin_assets.__file__).with_name("workspace.yaml")

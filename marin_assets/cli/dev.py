"""Serve Dagster's UI and its daemon on this machine, until Ctrl-C: `dagster dev` with Marin's code location.

Runs and events are those of DAGSTER_HOME, so the runs of scripts are shown too.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path

import marin_assets
from marin_assets.cli.options import OptionError
from marin_resources.settings import checkout, default_prefix, ensure_dagster_home

HOST = "127.0.0.1"
DEFAULT_PORT = 3000
MAX_PORT = 65535
NO_ADVICE = "ignore:Function `dev_command` is superseded"
"""Dagster advises `dg dev`, for projects that its tool dg has created."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=_port, default=DEFAULT_PORT, metavar="N", help=f"of {HOST} (default: {DEFAULT_PORT})"
    )


def run(options: argparse.Namespace) -> int:
    """Replace this process by `dagster dev`. Raises OptionError if the port is taken."""
    require_free(options.port)
    ensure_dagster_home()
    default_prefix()
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), NO_ADVICE]))
    command = [sys.executable, "-m", "dagster", "dev", "-h", HOST, "-p", str(options.port), "-w", str(workspace())]
    os.execv(command[0], command)


def workspace() -> Path:
    """The project's workspace.yaml: that of the checkout, of which the wheel has a copy."""
    root = checkout()
    return root / "workspace.yaml" if root is not None else Path(marin_assets.__file__).with_name("workspace.yaml")


def require_free(port: int) -> None:
    """Raise OptionError, with a free port, if another process listens on this one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was closed a moment ago is free
        try:
            probe.bind((HOST, port))
        except PermissionError:
            raise OptionError(f"marin dev: port {port} is reserved for root. Choose one above 1023.") from None
        except OSError:
            other = _free_port()
            raise OptionError(
                f"marin dev: port {port} is taken, maybe by another `make dev`. Stop that one, or choose another port: "
                f"make dev PORT={other}, or marin dev --port {other}."
            ) from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _port(text: str) -> int:
    """Parse a port. Raise argparse.ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a number from 1 to {MAX_PORT}")
    return int(text)

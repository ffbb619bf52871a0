"""Print the address of a step's page in Dagster's UI, and open it in the browser.

The UI is that of MARIN_UI_URL, else the one that `marin dev` serves on this machine, at its last port. Exit code 1
without a browser, and if no UI is served there.
"""

from __future__ import annotations

import argparse
import os
import socket
import webbrowser

from marin_assets.catalog.asset_key import key_of
from marin_assets.catalog.asset_page import page_of_asset
from marin_assets.cli.step_argument import add_step, chosen_node
from marin_assets.cli.verbs.dev import DEFAULT_PORT, HOST, ui_port
from marin_assets.run.options import FailedError
from marin_assets.run.output import print_line
from marin_resources.configuration.command import make_or

ANSWER_S = 1.0


def add_options(parser: argparse.ArgumentParser) -> None:
    add_step(parser)
    parser.add_argument("--print", action="store_true", help="only print the address")


def run(options: argparse.Namespace) -> int:
    node, given = chosen_node("open", options.step, options.partition), os.environ.get("MARIN_UI_URL")
    port = ui_port()
    page = page_of_asset(given or f"http://{HOST}:{port}", key_of(node), node.key)
    print_line(page)
    if options.print:
        return 0
    if not given and not _answers(port):
        start = f"PORT={port}" if port != DEFAULT_PORT else ""
        raise FailedError(
            f"No UI is served at http://{HOST}:{port}. Start it, and open the address then: "
            f"{make_or(f'dev {start}'.strip(), f'marin dev --port {port}')}"
        )
    if not webbrowser.open(page):
        tunnel = "" if given else f", through a tunnel if that is on another machine (ssh -L {port}:{HOST}:{port} …)"
        raise FailedError(f"No browser is found on this machine. Open the address in one{tunnel}, or pass --print.")
    return 0


def _answers(port: int) -> bool:
    """Whether a process of this machine listens at the port."""
    try:
        with socket.create_connection((HOST, port), timeout=ANSWER_S):
            return True
    except OSError:
        return False

"""Print the address of a step's page in Dagster's UI, and open it in the browser.

The UI is that of MARIN_UI_URL, else the one that `marin dev` serves on this machine. Exit code 1 without a browser.
"""

from __future__ import annotations

import argparse
import os
import webbrowser
from urllib.parse import quote, urlencode

from marin_assets.catalog.asset_key import key_of
from marin_assets.cli.step_argument import add_step, chosen_node
from marin_assets.cli.verbs.dev import DEFAULT_PORT, HOST
from marin_assets.run.options import FailedError
from marin_assets.run.output import print_line
from marin_assets.step.graph import Node


def add_options(parser: argparse.ArgumentParser) -> None:
    add_step(parser)
    parser.add_argument("--print", action="store_true", help="only print the address")


def run(options: argparse.Namespace) -> int:
    page = page_of(chosen_node("open", options.step, options.partition))
    print_line(page)
    if not options.print and not webbrowser.open(page):
        raise FailedError("No browser is found on this machine. Open the address elsewhere, or pass --print.")
    return 0


def page_of(node: Node) -> str:
    """The address of the asset's page, at the partition if the node is one."""
    ui = os.environ.get("MARIN_UI_URL") or f"http://{HOST}:{DEFAULT_PORT}"
    page = f"{ui.rstrip('/')}/assets/{'/'.join(quote(part, safe='') for part in key_of(node))}"
    return page if node.key is None else f"{page}?{urlencode({'view': 'partitions', 'partition': node.key})}"

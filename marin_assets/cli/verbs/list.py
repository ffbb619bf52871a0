"""List the selected steps with the paths of their outputs below the prefix. Looks at no output."""

from __future__ import annotations

import argparse
import json

from marin_assets.catalog.asset_key import key_of
from marin_assets.catalog.code_location import select_nodes
from marin_assets.catalog.description import description_of
from marin_assets.run.options import add_script, add_selection
from marin_assets.run.output import print_line
from marin_assets.step.graph import Node


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_script(parser)
    parser.add_argument("--names", action="store_true", help="print names alone, one a line")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with inputs and descriptions")


def run(options: argparse.Namespace) -> int:
    _, nodes = select_nodes(options.selection, options.experiment, options.script)
    if options.json:
        print_line(json.dumps([_to_json(node) for node in nodes], indent=2))
        return 0
    if options.names:
        for node in nodes:
            print_line(node.name)
        return 0
    width = max((len(node.name) for node in nodes), default=0)
    for node in nodes:
        print_line(f"{node.name:{width}}  {node.output.relative()}")
    return 0


def _to_json(node: Node) -> dict[str, object]:
    return {
        "name": node.name,
        "path": node.output.relative(),
        "asset": "/".join(key_of(node)),
        "inputs": [dependency.name for dependency in node.dependencies],
        "description": description_of(node.step),
    }

"""Say why an output was computed: its recipe, code, environment and inputs against those of the output before.

The step may be one that the code does not have any more: its whole name suffices. It reads records, and writes nothing.
"""

from __future__ import annotations

import argparse
import json

from marin_assets.cli.materialization_options import add_materialization, named
from marin_assets.inspection.explain.explanation import explain
from marin_assets.inspection.explain.lines import line_in_list, lines_of
from marin_assets.inspection.explain.to_json import materialization_to_json, to_json
from marin_assets.run.options import prefix_of
from marin_assets.run.output import print_line
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable


def add_options(parser: argparse.ArgumentParser) -> None:
    add_materialization(parser)
    parser.add_argument("--list", action="store_true", help="list all that are known, the newest first")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    step = named(options, store)
    if options.list:
        if options.json:
            print_line(
                json.dumps({"step": step.label, "known": list(map(materialization_to_json, step.known))}, indent=2)
            )
        else:
            for materialization in step.known:
                print_line(line_in_list(materialization))
        return 0
    explanation = explain(store.prefix, step.chosen(options.at), step.known)
    if options.json:
        print_line(json.dumps({"step": step.label, **to_json(explanation)}, indent=2))
    else:
        for line in lines_of(explanation, step.label):
            print_line(line)
    return 0

"""Say why an output was computed: its recipe, code, environment and inputs against those of the output before.

The step may be one that the code does not have any more: its whole name suffices. It reads records, and writes nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from marin_assets.cli.options import add_prefix, add_script, prefix_of
from marin_assets.cli.output import print_line
from marin_assets.plan.explain.explanation import explain
from marin_assets.plan.explain.lines import line_in_list, lines_of
from marin_assets.plan.explain.materializations import (
    Materialization,
    NoMaterializationError,
    materializations,
    newest_at,
)
from marin_assets.plan.explain.step_named import step_named
from marin_assets.plan.explain.to_json import materialization_to_json, to_json
from marin_assets.step.graph import Node
from marin_assets.step.values import ConfigError
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.output.store import Store


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", help="the step: its name, or a selection of one step")
    parser.add_argument("--partition", metavar="KEY", help="this partition of it")
    parser.add_argument(
        "--at", metavar="VERSION|RUN|DATE", help="the newest one of this version, of this Dagster run, or until then"
    )
    parser.add_argument("--list", action="store_true", help="list all that are known, the newest first")
    parser.add_argument("--experiment", metavar="NAME", help="only steps of this experiment")
    add_prefix(parser)
    add_script(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    name, _, node = step_named(options.step, store.prefix, options.experiment, options.script)
    label = name if options.partition is None else f"{name}[{options.partition}]"
    known = _known(name, node, store, options.partition)
    if options.list:
        if options.json:
            print_line(json.dumps({"step": label, "known": [materialization_to_json(e) for e in known]}, indent=2))
        else:
            for each in known:
                print_line(line_in_list(each))
        return 0
    found = explain(store.prefix, _chosen(known, node, options.at), known)
    if options.json:
        print_line(json.dumps({"step": label, **to_json(found)}, indent=2))
    else:
        for line in lines_of(found, label):
            print_line(line)
    return 0


def _known(name: str, node: Node | None, store: Store, key: str | None) -> list[Materialization]:
    """Raises ConfigError if there is none."""
    if node is not None and node.step.partitions is not None and key is None:
        raise ConfigError(f"Step {name!r} has partitions. Say which one with --partition KEY.")
    if node is not None and key is not None:
        node = node.at(key)
    elsewhere = [store.locate(node.output)] if node is not None and node.output.override is not None else []
    found = materializations(store.prefix, name, key, elsewhere)
    if not found:
        of_key = f" at the partition {key!r}" if key is not None else ""
        raise ConfigError(
            f"No record of the step {name!r}{of_key} is below the prefix {store.prefix!r}. Give another --prefix, or "
            "compute it first; if it has partitions, give one with --partition."
        )
    return found


def _chosen(known: Sequence[Materialization], node: Node | None, at: str | None) -> Materialization:
    """The one that is asked for: by default the newest complete one of the code's version, else the newest."""
    if at is not None:
        try:
            return newest_at(known, at)
        except NoMaterializationError as error:
            raise ConfigError(str(error)) from None
    complete = [each for each in known if each.complete] or known
    current = [each for each in complete if node is not None and each.version == node.version.hash]
    return (current or complete)[0]

"""Print the state of each selected output: complete, running, failed, blocked or missing. It starts nothing.

Exit code 0, also if outputs failed or are missing; 1 if a control file is damaged.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from marin_assets.cli.options import add_prefix, add_script, add_selection, prefix_of
from marin_assets.cli.output import print_line
from marin_assets.plan.code_location import select_nodes
from marin_assets.plan.partition_states import partition_states
from marin_assets.step.graph import Node
from marin_resources.output import Observed
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.output.collected import with_collected
from marin_resources.storage.output.states import PartitionState, State, state_of
from marin_resources.storage.output.store import Store, other_version_message


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_prefix(parser)
    add_script(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    _, nodes = select_nodes(options.selection, options.experiment, options.script)
    looked = with_collected(store.prefix, store.look(node.output for node in nodes if node.step.partitions is None))
    rows = [(node, looked[node.output]) for node in nodes if node.step.partitions is None]
    sets = [(node, partition_states(node, store)) for node in nodes if node.step.partitions is not None]
    if options.json:
        found = [_to_json(node, observed) for node, observed in rows]
        found += [_partitions_to_json(node, store, states) for node, states in sets]
        print_line(json.dumps({"prefix": store.prefix, "outputs": found}, indent=2))
    else:
        width = max((len(node.output.relative()) for node in nodes), default=0)
        for node, observed in rows:
            line = f"{state_of(observed):8}  {node.output.relative():{width}}  {_describe(node, observed)}"
            print_line(line.rstrip())
        for node, states in sets:
            of_states = Counter(each.state for each in states)
            counted = ", ".join(f"{of_states[state]} {state}" for state in State if of_states[state])
            print_line(f"{'':8}  {node.output.relative():{width}}  partitions: {counted or 'none'}")
        counts = Counter(state_of(observed) for _, observed in rows)
        counts.update(each.state for _, states in sets for each in states)
        print_line(", ".join(f"{counts[state]} {state}" for state in State if counts[state]) + f" at {store.prefix}")
    damaged = [observed for _, observed in rows if observed.damage]
    return 1 if damaged or any(each.state is State.BLOCKED for _, states in sets for each in states) else 0


def _describe(node: Node, observed: Observed) -> str:
    """The size of a complete output, the error of a failed one, the holder of one that is computed."""
    record = observed.record or {}
    match state_of(observed):
        case State.BLOCKED:
            return observed.damage or other_version_message(node.output, observed.path)
        case State.COMPLETE:
            manifest = record.get("manifest") or {}
            files = f"{manifest['files']} file{'s' * (manifest['files'] != 1)}" if manifest else "no manifest"
            size = f"{files}, {readable_bytes(manifest['bytes'])}" if manifest else files
            elsewhere = f"at {observed.data_path}" if observed.data_path != observed.path else ""
            return ", ".join(filter(None, (size, str(record.get("finished_at") or "")[:19], elsewhere)))
        case State.RUNNING:
            return f"by {observed.holder.describe()}" if observed.holder else ""
        case State.FAILED:
            return str(record.get("error") or "was stopped")
        case State.DEAD:
            return "its worker is gone; run again to continue"
        case State.MISSING if observed.collected:
            return "collected by marin gc; a run brings it back"
    return ""


def _to_json(node: Node, observed: Observed) -> dict[str, Any]:
    record = observed.record or {}
    manifest = record.get("manifest") or {}
    return {
        "name": node.name,
        "path": observed.path,
        "data_path": observed.data_path,
        "state": state_of(observed),
        "holder": observed.holder.describe() if observed.holder else None,
        "error": observed.damage or record.get("error"),
        "files": manifest.get("files"),
        "bytes": manifest.get("bytes"),
        "finished_at": record.get("finished_at"),
        "result": dict(observed.result),
    }


def _partitions_to_json(node: Node, store: Store, states: Sequence[PartitionState]) -> dict[str, Any]:
    return {
        "name": node.name,
        "path": store.locate(node.output),
        "partitions": {each.key: each.state for each in states},
    }

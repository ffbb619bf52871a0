"""Print the state of each selected output: complete, running, failed, blocked or missing. It starts nothing.

Below an output that is computed now: for how long, in which job of which cluster, how far and how fast it is, and the
last line of its log.

Exit code 0, also if outputs failed or are missing; 1 if a control file is damaged.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from marin_assets.catalog.code_location import select_nodes
from marin_assets.cli.render.output_summary import describe
from marin_assets.inspection.live_attempts import LiveAttempt, describe_running, running_of
from marin_assets.plan.partitions import partition_states
from marin_assets.run.options import add_prefix, add_script, add_selection, prefix_of
from marin_assets.run.output import print_line
from marin_assets.step.graph import Node
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.output.notes.collection import with_collected
from marin_resources.storage.output.state_summary import PartitionState, State, state_of
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Observed


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_prefix(parser)
    add_script(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    _, nodes = select_nodes(options.selection, options.experiment, options.script)
    states = _look(nodes, store)
    if options.json:
        outputs = [_to_json(node, observed, states.running) for node, observed in states.rows]
        outputs += [_partitions_to_json(node, store, partitions, states) for node, partitions in states.sets]
        print_line(json.dumps({"prefix": store.prefix, "outputs": outputs}, indent=2))
    else:
        for line in _lines_of(nodes, states, datetime.now(UTC)):
            print_line(line)
        counts = Counter(state_of(observed) for _, observed in states.rows)
        counts.update(partition.state for _, partitions in states.sets for partition in partitions)
        print_line(", ".join(f"{counts[state]} {state}" for state in State if counts[state]) + f" at {store.prefix}")
    damaged = any(observed.damage for _, observed in states.rows)
    blocked = any(partition.state is State.BLOCKED for _, partitions in states.sets for partition in partitions)
    return 1 if damaged or blocked else 0


@dataclass(frozen=True, kw_only=True)
class _States:
    rows: Sequence[tuple[Node, Observed]]
    """The nodes without partitions."""
    sets: Sequence[tuple[Node, Sequence[PartitionState]]]
    """The nodes with partitions."""
    computed: Sequence[tuple[Node, Observed]]
    """The partitions that are computed now."""
    running: Mapping[str, LiveAttempt]
    """By path, the attempts that run now."""


def _look(nodes: Sequence[Node], store: Store) -> _States:
    looked = with_collected(store.prefix, store.look(node.output for node in nodes if node.step.partitions is None))
    rows = [(node, looked[node.output]) for node in nodes if node.step.partitions is None]
    sets = [(node, partition_states(node, store)) for node in nodes if node.step.partitions is not None]
    at_work = [
        node.at(partition.key) for node, states in sets for partition in states if partition.state is State.RUNNING
    ]
    again = store.look(node.output for node in at_work)
    computed = [(node, again[node.output]) for node in at_work]
    return _States(
        rows=rows, sets=sets, computed=computed, running=running_of(observed for _, observed in (*rows, *computed))
    )


def _lines_of(nodes: Sequence[Node], states: _States, now: datetime) -> Iterator[str]:
    width = max((len(node.output.relative()) for node in nodes), default=0)

    def lines_of_output(node: Node, observed: Observed) -> Iterator[str]:
        yield f"{state_of(observed):8}  {node.output.relative():{width}}  {describe(node, observed)}".rstrip()
        if (running := states.running.get(observed.path)) is not None:
            yield f"{'':8}  {'':{width}}  {describe_running(running, now)}"

    for node, observed in states.rows:
        yield from lines_of_output(node, observed)
    for node, partitions in states.sets:
        of_states = Counter(partition.state for partition in partitions)
        counted = ", ".join(f"{of_states[state]} {state}" for state in State if of_states[state])
        yield f"{'':8}  {node.output.relative():{width}}  partitions: {counted or 'none'}"
        for partition_node, observed in states.computed:
            if partition_node.step is node.step and observed.path in states.running:
                yield from lines_of_output(partition_node, observed)


def _to_json(node: Node, observed: Observed, running: Mapping[str, LiveAttempt]) -> dict[str, Any]:
    record = observed.record
    return {
        "name": node.name,
        "path": observed.path,
        "data_path": observed.data_path,
        "state": state_of(observed),
        "holder": observed.holder.describe() if observed.holder else None,
        "running": asdict(running[observed.path]) if observed.path in running else None,
        "error": observed.damage or record.error,
        "files": record.manifest.files,
        "bytes": record.manifest.bytes,
        "finished_at": record.finished_at,
        "adopted": observed.adopted.to_dict() if observed.adopted else None,
        "adopted_inputs": {name: adoption.to_dict() for name, adoption in record.adopted_inputs.items()},
        "result": dict(observed.result),
    }


def _partitions_to_json(
    node: Node, store: Store, partitions: Sequence[PartitionState], states: _States
) -> dict[str, Any]:
    at_work = [
        (partition_node, seen.path) for partition_node, seen in states.computed if partition_node.step is node.step
    ]
    return {
        "name": node.name,
        "path": store.locate(node.output),
        "partitions": {partition.key: partition.state for partition in partitions},
        "running": {
            partition_node.key: asdict(states.running[path])
            for partition_node, path in at_work
            if path in states.running
        },
    }

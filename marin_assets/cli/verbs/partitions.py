"""Print the partitions of a step: key, state, size, age, and why one failed. It starts nothing.

`--state failed` prints those alone; with `--keys` only their keys, one a line, as `marin materialize` takes them:

    marin partitions tokenized/web --state failed --keys | xargs -I K marin materialize tokenized/web --partition K

`--remove KEY` removes a key, such as one that was typed wrong, from Dagster's dynamic set. Its outputs stay.
`--register` adds the keys that the store has to Dagster's dynamic set: after a loss of its database, for example. Those
of partitions that failed are among them, so that a backfill computes them.

Exit code 0, also if partitions failed or are missing; 1 if a control file is damaged.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from marin_assets.catalog.code_location import select_nodes
from marin_assets.plan.partition_runs import PartitionRun
from marin_assets.plan.partitions import partition_states
from marin_assets.run.options import add_prefix, add_script, add_selection, prefix_of
from marin_assets.run.output import print_line, print_stderr
from marin_assets.run.partition_options import add_keys_of, known_keys_of
from marin_assets.step.graph import Node
from marin_assets.step.partitions.products import ProductPartitions
from marin_assets.step.partitions.sets import DynamicPartitions
from marin_assets.step.values import ConfigError
from marin_resources.ray_tpu.fleet.fleet import store_at
from marin_resources.storage.control.control import require_reachable
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.output.state_summary import PartitionState, State

UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def add_options(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_prefix(parser)
    add_script(parser)
    parser.add_argument(
        "--state", action="append", choices=[state.value for state in State], help="only partitions in this state"
    )
    parser.add_argument("--keys", action="store_true", help="print keys alone, one a line")
    dynamic = parser.add_mutually_exclusive_group()
    dynamic.add_argument("--register", action="store_true", help="add the store's keys to Dagster's dynamic set")
    dynamic.add_argument(
        "--remove", action="append", default=[], metavar="KEY", help="remove this key from Dagster's dynamic set"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    store = store_at(prefix_of(options))
    require_reachable(store.prefix)
    _, nodes = select_nodes(options.selection, options.experiment, options.script)
    chosen = [node for node in nodes if node.step.partitions is not None]
    if len(chosen) != 1:
        names = ", ".join(repr(node.name) for node in chosen) or "none"
        raise ConfigError(f"marin partitions takes one step with partitions, and got {names}. Give the name of one.")
    [node] = chosen
    if options.remove:
        _remove(node, options.remove)
    states = partition_states(node, store, known_keys_of(node))
    if options.register:
        _register(node, [partition.key for partition in states if partition.state is not State.MISSING])
    shown = [partition for partition in states if not options.state or partition.state in options.state]
    if options.json:
        rows = [dataclasses.asdict(partition) for partition in shown]
        listing = {"name": node.name, "path": store.locate(node.output), "partitions": rows}
        print_line(json.dumps(listing, indent=2))
    elif options.keys:
        for partition in shown:
            print_line(partition.key)
    else:
        _print_table(shown)
        counts = Counter(partition.state for partition in states)
        counted = ", ".join(f"{counts[state]} {state}" for state in State if counts[state]) or "no partition"
        print_line(f"{counted} at {store.locate(node.output)}")
    return 1 if any(partition.state is State.BLOCKED for partition in states) else 0


def _dynamic_sets(node: Node, option: str) -> list[str]:
    """The names of the dynamic sets of the node. Raises ConfigError for none."""
    partitions = node.step.partitions
    sets = partitions.dimensions.values() if isinstance(partitions, ProductPartitions) else [partitions]
    names = [dimension.name for dimension in sets if isinstance(dimension, DynamicPartitions)]
    if not names:
        raise ConfigError(
            f"Step {node.name!r} has the partitions {partitions!r}, whose keys are in the code: there is nothing to "
            f"{option}. Leave out --{option}."
        )
    return names


def _remove(node: Node, keys: Sequence[str]) -> None:
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.sync.dynamic_keys import known_keys, remove_keys

    registered = {name: known_keys(name) for name in _dynamic_sets(node, "remove")}
    removed = [(_set_with(key, registered), key) for key in dict.fromkeys(keys)]
    for name, key in removed:
        remove_keys({name: [key]})
        print_stderr(f"removed from the set {name!r}: {key}")


def _set_with(key: str, registered: Mapping[str, Sequence[str]]) -> str:
    """The dynamic set that has the key. Raises ConfigError for none, and for several."""
    matching = [name for name, keys in registered.items() if key in keys]
    if len(matching) == 1:
        return matching[0]
    sets = " and ".join(map(repr, registered))
    if matching:
        raise ConfigError(f"The key {key!r} is in the sets {sets}. Remove it with a step that has one of them.")
    close = difflib.get_close_matches(key, [candidate for keys in registered.values() for candidate in keys], n=1)
    meant = f"Did you mean {close[0]!r}?" if close else "`marin partitions STEP --keys` prints those that are there."
    raise ConfigError(f"The set {sets} has no key {key!r}. {meant}")


def _register(node: Node, begun: Sequence[str]) -> None:
    _dynamic_sets(node, "register")
    if not add_keys_of(PartitionRun(nodes=(node,), keys=tuple(begun))):
        print_stderr(f"Dagster knows the keys of all {len(begun)} partitions that the store has already")


def _print_table(shown: Sequence[PartitionState]) -> None:
    width = max((len(partition.key) for partition in shown), default=0)
    for partition in shown:
        size = "" if partition.bytes is None else readable_bytes(partition.bytes)
        line = (
            f"{partition.state:8}  {partition.key:{width}}  {size:>10}  {_age(partition.finished_s):>8}  "
            f"{partition.error or partition.adopted}"
        )
        print_line(line.rstrip())


def _age(finished_s: int | None) -> str:
    """Time since then, in the largest whole unit."""
    if not finished_s:
        return ""
    seconds = max(0, int(time.time()) - finished_s)
    name, unit = next((name, unit) for name, unit in UNITS if seconds >= unit or unit == 1)
    return f"{seconds // unit} {name}"

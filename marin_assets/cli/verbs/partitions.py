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
        _register(node, [each.key for each in states if each.state is not State.MISSING])
    shown = [each for each in states if not options.state or each.state in options.state]
    if options.json:
        rows = [dataclasses.asdict(each) for each in shown]
        found = {"name": node.name, "path": store.locate(node.output), "partitions": rows}
        print_line(json.dumps(found, indent=2))
    elif options.keys:
        for each in shown:
            print_line(each.key)
    else:
        _print_table(shown)
        counts = Counter(each.state for each in states)
        counted = ", ".join(f"{counts[state]} {state}" for state in State if counts[state]) or "no partition"
        print_line(f"{counted} at {store.locate(node.output)}")
    return 1 if any(each.state is State.BLOCKED for each in states) else 0


def _dynamic_sets(node: Node, option: str) -> list[str]:
    """The names of the dynamic sets of the node. Raises ConfigError for none."""
    partitions = node.step.partitions
    sets = partitions.dimensions.values() if isinstance(partitions, ProductPartitions) else [partitions]
    found = [each.name for each in sets if isinstance(each, DynamicPartitions)]
    if not found:
        raise ConfigError(
            f"Step {node.name!r} has the partitions {partitions!r}, whose keys are in the code: there is nothing to "
            f"{option}. Leave out --{option}."
        )
    return found


def _remove(node: Node, keys: Sequence[str]) -> None:
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.sync.dynamic_keys import known_keys, remove_keys

    known = {name: known_keys(name) for name in _dynamic_sets(node, "remove")}
    removed = [(_set_with(key, known), key) for key in dict.fromkeys(keys)]
    for name, key in removed:
        remove_keys({name: [key]})
        print_stderr(f"removed from the set {name!r}: {key}")


def _set_with(key: str, known: Mapping[str, Sequence[str]]) -> str:
    """The dynamic set that has the key. Raises ConfigError for none, and for several."""
    found = [name for name, keys in known.items() if key in keys]
    if len(found) == 1:
        return found[0]
    sets = " and ".join(map(repr, known))
    if found:
        raise ConfigError(f"The key {key!r} is in the sets {sets}. Remove it with a step that has one of them.")
    close = difflib.get_close_matches(key, [each for keys in known.values() for each in keys], n=1)
    meant = f"Did you mean {close[0]!r}?" if close else "`marin partitions STEP --keys` prints those that are there."
    raise ConfigError(f"The set {sets} has no key {key!r}. {meant}")


def _register(node: Node, begun: Sequence[str]) -> None:
    _dynamic_sets(node, "register")
    if not add_keys_of(PartitionRun(nodes=(node,), keys=tuple(begun))):
        print_stderr(f"Dagster knows the keys of all {len(begun)} partitions that the store has already")


def _print_table(shown: Sequence[PartitionState]) -> None:
    width = max((len(each.key) for each in shown), default=0)
    for each in shown:
        size = "" if each.bytes is None else readable_bytes(each.bytes)
        line = (
            f"{each.state:8}  {each.key:{width}}  {size:>10}  {_age(each.finished_s):>8}  {each.error or each.adopted}"
        )
        print_line(line.rstrip())


def _age(finished_s: int | None) -> str:
    """How long ago, in the largest whole unit."""
    if not finished_s:
        return ""
    seconds = max(0, int(time.time()) - finished_s)
    name, unit = next((name, unit) for name, unit in UNITS if seconds >= unit or unit == 1)
    return f"{seconds // unit} {name}"

"""Options that choose partitions: `--partition KEY`, `--partition-range FIRST...LAST`; without them, all that exist."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache

from marin_assets.plan.partition_runs import PartitionRun, keys_of_sets, new_keys, runs_of
from marin_assets.run.output import print_stderr
from marin_assets.step.graph import Node
from marin_assets.step.partitions.sets import RANGE, Partitions
from marin_assets.step.values import ConfigError
from marin_resources.types.partition_key import PartitionKeyError


def add_partition_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--partition", action="append", default=[], metavar="KEY", help="this partition, not all")
    parser.add_argument(
        "--partition-range", "--partition_range", metavar="FIRST...LAST", help="the partitions from one key to another"
    )


def chosen_runs(nodes: Sequence[Node], keys: Sequence[str], key_range: str | None) -> list[PartitionRun]:
    """The runs that compute the nodes at the chosen keys; at all keys without a choice. Raises ConfigError."""
    if not any(node.step.partitions is not None for node in nodes):
        if keys or key_range:
            option = "--partition" if keys else "--partition-range"
            raise ConfigError(f"None of the selected steps has partitions. Leave out {option}.")
        return runs_of(nodes, lambda node: (), lambda partitions: ())
    now, dynamic_keys = datetime.now(UTC), cache(_known_keys)
    keys_now = cache(lambda partitions: partitions.keys_now(now, dynamic_keys))
    node_by_set: dict[Partitions, Node] = {}

    def keys_of(node: Node) -> Sequence[str]:
        node_by_set[_set_of(node)] = node
        return chosen_keys(node, keys, key_range, keys_now(_set_of(node)))

    runs = runs_of(nodes, keys_of, keys_now)
    new = _new_keys(keys_of_sets(runs), dynamic_keys)
    if new:
        _require_one_set(dict(reversed(node_by_set.items())), keys, new)
        grown = cache(
            lambda partitions: partitions.keys_now(now, lambda name: [*dynamic_keys(name), *new.get(name, ())])
        )
        runs = runs_of(nodes, keys_of, grown)  # new keys follow the known ones, as they will in Dagster
    computed = {node for run in runs for node in run.nodes}
    for node in nodes:
        if node not in computed:
            print_stderr(f"{node.name}: {node.step.partitions} has no key yet, so there is nothing to make")
    return runs


def lines_of_new_keys(runs: Sequence[PartitionRun]) -> list[str]:
    """A line for each dynamic set to which the runs would add keys."""
    return [_line_of_new(name, keys) for name, keys in _new_keys(keys_of_sets(runs), _known_keys).items()]


def _new_keys(
    requested: Mapping[str, Sequence[str]], dynamic_keys: Callable[[str], Sequence[str]]
) -> dict[str, list[str]]:
    """The keys that dynamic sets lack, by the name of the set. Raises ConfigError for one that a set cannot have."""
    try:
        new = {name: new_keys(name, keys, dynamic_keys(name)) for name, keys in requested.items()}
    except PartitionKeyError as error:
        raise ConfigError(str(error)) from None
    return {name: keys for name, keys in new.items() if keys}


def _require_one_set(
    node_by_set: Mapping[Partitions, Node], keys: Sequence[str], new: Mapping[str, Sequence[str]]
) -> None:
    """Refuse to add a chosen key to several sets, of which one may be meant. Raises ConfigError."""
    if len(node_by_set) < 2:
        return
    for key in keys:
        for partitions, node in node_by_set.items():
            own = keys_of_sets([PartitionRun(nodes=(node,), keys=(key,))])
            if any(not frozenset(new.get(name, ())).isdisjoint(own_keys) for name, own_keys in own.items()):
                sets = " and ".join(f"{key_set} of {member.name!r}" for key_set, member in node_by_set.items())
                raise ConfigError(
                    f"--partition {key!r} is new in {partitions}, and the selected steps have several sets: {sets}. "
                    "Select the steps of one of them."
                )


def _line_of_new(name: str, keys: Sequence[str]) -> str:
    return f"new in the set {name!r}: {', '.join(keys)}"


def chosen_keys(node: Node, keys: Sequence[str], key_range: str | None, keys_now: Sequence[str]) -> Sequence[str]:
    """The chosen keys of one node; without a choice, all keys that its set has now. Raises ConfigError."""
    if keys and key_range:
        raise ConfigError("Got --partition and --partition-range, expected one of them.")
    if key_range:
        return _in_range(node, key_range, keys_now)
    for key in keys:
        node.at(key)
    return keys or keys_now


def known_keys_of(node: Node) -> Sequence[str]:
    """The keys that the node's set has now."""
    return _set_of(node).keys_now(datetime.now(UTC), _known_keys)


def add_keys_of(*runs: PartitionRun) -> bool:
    """Add the keys of the runs to Dagster's sets: it refuses unknown keys of a dynamic set. Raises ConfigError.

    All at once, before the first run: the range of a run has neighbouring keys. Return whether one of them is new.
    """
    keys_by_set = keys_of_sets(runs)
    if not keys_by_set:
        return False
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.sync.dynamic_keys import add_keys

    try:
        added = add_keys(keys_by_set)
    except PartitionKeyError as error:
        raise ConfigError(str(error)) from None
    for name, new in added.items():
        print_stderr(_line_of_new(name, new))
    return bool(added)


def _in_range(node: Node, key_range: str, keys_now: Sequence[str]) -> Sequence[str]:
    first, dots, last = key_range.partition(RANGE)
    if not dots or not first or not last:
        raise ConfigError(f"--partition-range {key_range!r} is not a range. Expected FIRST{RANGE}LAST.")
    place = {key: i for i, key in enumerate(keys_now)}
    for key in (first, last):
        node.at(key)
        if key not in place:
            latest = f"The last one is {keys_now[-1]!r}" if keys_now else "There is none yet"
            raise ConfigError(f"Step {node.name!r} has no partition {key!r} yet. {latest}.")
    if place[last] < place[first]:
        raise ConfigError(f"--partition-range {key_range!r} ends before it begins. Exchange the keys.")
    return keys_now[place[first] : place[last] + 1]


def _set_of(node: Node) -> Partitions:
    assert node.step.partitions is not None
    return node.step.partitions


def _known_keys(name: str) -> Sequence[str]:
    # late, for its weight: Dagster takes a second
    from marin_assets.assets.sync.dynamic_keys import known_keys

    return known_keys(name)

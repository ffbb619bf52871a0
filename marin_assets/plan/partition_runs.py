"""The partitions that a command computes of each step, and their runs: all steps of one run have the same keys.

In:  the selected nodes, and the requested keys.
Out: runs, inputs before readers. A step that others read is computed at the keys that they read, the others at the
     requested keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from marin_assets.step.graph import Node
from marin_assets.step.partitions.products import SEPARATOR, ProductPartitions
from marin_assets.step.partitions.sets import DynamicPartitions, Partitions
from marin_resources.types.partition_key import FoldersOfKeys


@dataclass(frozen=True, kw_only=True)
class PartitionRun:
    """One run: nodes without partitions, or the nodes of one set at a range of its keys."""

    nodes: tuple[Node, ...]
    keys: tuple[str, ...] = ()
    """Keys in the order of the set. Empty: nodes without partitions."""

    def outputs(self) -> list[Node]:
        """A node for each output of the run, inputs before readers."""
        return [node.at(key) for node in self.nodes for key in self.keys] if self.keys else list(self.nodes)


def runs_of(
    nodes: Sequence[Node], requested: Callable[[Node], Sequence[str]], keys_now: Callable[[Partitions], Sequence[str]]
) -> list[PartitionRun]:
    """The runs that compute the nodes, which are in the order of their graph.

    `requested` returns the requested keys of a node; it is called for nodes that no other one reads. `keys_now` returns
    the keys that a set has, in order.
    """
    keys = _needed(nodes, requested)
    runs: list[PartitionRun] = []
    pending = [node for node in nodes if node.step.partitions is None or keys[node]]
    while pending:
        together = _next(pending, keys)
        taken = set(together)
        pending = [node for node in pending if node not in taken]
        partitions = together[0].step.partitions
        if partitions is None:
            runs.append(PartitionRun(nodes=tuple(together)))
            continue
        limit = min((n for node in together if (n := node.step.max_partitions_per_run) is not None), default=None)
        for key_range in _ranges(keys[together[0]], partitions, keys_now(partitions), limit):
            runs.append(PartitionRun(nodes=tuple(together), keys=key_range))
    return runs


def keys_of_sets(runs: Iterable[PartitionRun]) -> dict[str, list[str]]:
    """The keys of the runs by dynamic set, each sorted."""
    keys_by_set: dict[str, set[str]] = {}
    for run in runs:
        for name, keys in _by_set(run.nodes[0].step.partitions, run.keys).items():
            keys_by_set.setdefault(name, set()).update(keys)
    return {name: sorted(keys) for name, keys in keys_by_set.items()}


def new_keys(name: str, keys: Iterable[str], keys_now: Sequence[str]) -> list[str]:
    """The keys that the dynamic set of this name lacks. Raises PartitionKeyError for one that it cannot have."""
    existing, folders = frozenset(keys_now), FoldersOfKeys(keys_now)
    new = [key for key in keys if key not in existing]
    for key in new:
        folders.require_free(key, f"the set {name!r}")
    return new


def _by_set(partitions: Partitions | None, keys: Sequence[str]) -> dict[str, set[str]]:
    """The keys of the dynamic sets that keys of this set consist of."""
    if isinstance(partitions, DynamicPartitions):
        return {partitions.name: set(keys)}
    keys_by_set: dict[str, set[str]] = {}
    if isinstance(partitions, ProductPartitions):
        parts = [partitions.split(key) for key in keys]
        for dimension, own in partitions.dimensions.items():
            for name, own_keys in _by_set(own, [part[dimension] for part in parts]).items():
                keys_by_set.setdefault(name, set()).update(own_keys)
    return keys_by_set


def _needed(nodes: Sequence[Node], requested: Callable[[Node], Sequence[str]]) -> dict[Node, frozenset[str]]:
    """The keys of each node with partitions: those that its readers among the nodes need, else the requested ones."""
    needed: dict[Node, set[str]] = {node: set() for node in nodes if node.step.partitions is not None}
    read = {source for node in nodes for source, _ in node.reads}
    for node in reversed(nodes):
        if node in needed and node not in read:
            needed[node].update(requested(node))
        own: Sequence[str | None] = sorted(needed[node]) if node in needed else [None]
        for source, how in node.reads:
            if source in needed:
                needed[source].update(str(key) for own_key in own for key in how.keys(own_key))
    return {node: frozenset(keys) for node, keys in needed.items()}


def _next(pending: Sequence[Node], keys: dict[Node, frozenset[str]]) -> list[Node]:
    """The nodes of the next run: the first that waits for none, and all with its keys that need no other run first."""
    together: list[Node] = []
    waiting = set(pending)
    for node in pending:
        if waiting.isdisjoint(node.dependencies) and (not together or _same(together[0], node, keys)):
            together.append(node)
            waiting.discard(node)
    return together


def _same(node: Node, other: Node, keys: dict[Node, frozenset[str]]) -> bool:
    return node.step.partitions == other.step.partitions and keys.get(node) == keys.get(other)


def _ranges(
    keys: frozenset[str], partitions: Partitions, keys_now: Sequence[str], limit: int | None
) -> Iterator[tuple[str, ...]]:
    """The keys in the order of `keys_now`, in Dagster's ranges of at most `limit` keys; keys outside it one by one.

    Dagster's range of a product is one of each dimension, so other ranges stay within one key of the first dimension.
    """
    split = isinstance(partitions, ProductPartitions) and (limit is not None or len(keys) < len(keys_now))
    key_range: list[str] = []
    for key in keys_now:
        apart = key_range and split and key.split(SEPARATOR)[0] != key_range[-1].split(SEPARATOR)[0]
        if key_range and (key not in keys or apart or len(key_range) == limit):
            yield tuple(key_range)
            key_range = []
        if key in keys:
            key_range.append(key)
    if key_range:
        yield tuple(key_range)
    yield from ((key,) for key in sorted(keys - frozenset(keys_now)))

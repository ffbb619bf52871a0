"""Which partitions of which steps a command makes, and in which runs: all steps of one run have the same keys.

In:  the selected nodes, and the keys that are asked for.
Out: runs, inputs before readers. A step that others read is made at the keys that they read, the others at those that
     are asked for.
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
    """In the order of the set. Empty: nodes without partitions."""

    def outputs(self) -> list[Node]:
        """A node for each output of the run, inputs before readers."""
        return [node.at(key) for node in self.nodes for key in self.keys] if self.keys else list(self.nodes)


def runs_of(
    nodes: Sequence[Node], asked: Callable[[Node], Sequence[str]], keys_now: Callable[[Partitions], Sequence[str]]
) -> list[PartitionRun]:
    """The runs that make the nodes, which are in the order of their graph.

    `asked` returns the keys that a node is asked for; it is called for nodes that no other one reads. `keys_now`
    returns the keys that a set has, in order.
    """
    keys = _needed(nodes, asked)
    runs: list[PartitionRun] = []
    left = [node for node in nodes if node.step.partitions is None or keys[node]]
    while left:
        together = _next(left, keys)
        taken = set(together)
        left = [node for node in left if node not in taken]
        partitions = together[0].step.partitions
        if partitions is None:
            runs.append(PartitionRun(nodes=tuple(together)))
            continue
        limit = min((n for node in together if (n := node.step.max_partitions_per_run) is not None), default=None)
        for some in _ranges(keys[together[0]], partitions, keys_now(partitions), limit):
            runs.append(PartitionRun(nodes=tuple(together), keys=some))
    return runs


def keys_of_sets(runs: Iterable[PartitionRun]) -> dict[str, list[str]]:
    """The keys of the runs by dynamic set, each sorted."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for name, keys in _by_set(run.nodes[0].step.partitions, run.keys).items():
            found.setdefault(name, set()).update(keys)
    return {name: sorted(keys) for name, keys in found.items()}


def new_keys(name: str, keys: Iterable[str], known: Sequence[str]) -> list[str]:
    """The keys that the dynamic set of this name lacks. Raises PartitionKeyError for one that it cannot have."""
    there, folders = frozenset(known), FoldersOfKeys(known)
    new = [key for key in keys if key not in there]
    for key in new:
        folders.require_free(key, f"the set {name!r}")
    return new


def _by_set(partitions: Partitions | None, keys: Sequence[str]) -> dict[str, set[str]]:
    """The keys of the dynamic sets that keys of this set consist of."""
    if isinstance(partitions, DynamicPartitions):
        return {partitions.name: set(keys)}
    found: dict[str, set[str]] = {}
    if isinstance(partitions, ProductPartitions):
        parts = [partitions.split(key) for key in keys]
        for dimension, own in partitions.dimensions.items():
            for name, some in _by_set(own, [part[dimension] for part in parts]).items():
                found.setdefault(name, set()).update(some)
    return found


def _needed(nodes: Sequence[Node], asked: Callable[[Node], Sequence[str]]) -> dict[Node, frozenset[str]]:
    """The keys of each node with partitions: what its readers among the nodes need, else what is asked for."""
    needed: dict[Node, set[str]] = {node: set() for node in nodes if node.step.partitions is not None}
    read = {source for node in nodes for source, _ in node.reads}
    for node in reversed(nodes):
        if node in needed and node not in read:
            needed[node].update(asked(node))
        own: Sequence[str | None] = sorted(needed[node]) if node in needed else [None]
        for source, how in node.reads:
            if source in needed:
                needed[source].update(str(key) for one in own for key in how.keys(one))
    return {node: frozenset(keys) for node, keys in needed.items()}


def _next(left: Sequence[Node], keys: dict[Node, frozenset[str]]) -> list[Node]:
    """The nodes of the next run: the first that waits for none, and all with its keys that need no other run first."""
    found: list[Node] = []
    waiting = set(left)
    for node in left:
        if waiting.isdisjoint(node.dependencies) and (not found or _same(found[0], node, keys)):
            found.append(node)
            waiting.discard(node)
    return found


def _same(one: Node, other: Node, keys: dict[Node, frozenset[str]]) -> bool:
    return one.step.partitions == other.step.partitions and keys.get(one) == keys.get(other)


def _ranges(
    keys: frozenset[str], partitions: Partitions, known: Sequence[str], limit: int | None
) -> Iterator[tuple[str, ...]]:
    """The keys in the order of `known`, in Dagster's ranges of at most `limit` keys; unknown ones one by one.

    Dagster's range of a product is one of each dimension, so other ranges stay within one key of the first dimension.
    """
    split = isinstance(partitions, ProductPartitions) and (limit is not None or len(keys) < len(known))
    some: list[str] = []
    for key in known:
        apart = some and split and key.split(SEPARATOR)[0] != some[-1].split(SEPARATOR)[0]
        if some and (key not in keys or apart or len(some) == limit):
            yield tuple(some)
            some = []
        if key in keys:
            some.append(key)
    if some:
        yield tuple(some)
    yield from ((key,) for key in sorted(keys - frozenset(known)))

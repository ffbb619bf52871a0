"""The drift of a node whose output is complete: its record held against the node, code and inputs of today.

Inputs are known by the digests of their manifests. A run looks at each of its outputs anyway, so what it found is kept
for the readers that come later in the same run; only inputs that are not part of the run are looked at once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from marin_assets.plan.facts import drifting_facts, manifest_digest
from marin_assets.step.graph import Graph, Node
from marin_resources.drift.drift import Drift, Kind, find_drift, not_recorded
from marin_resources.output import Observed, Output
from marin_resources.storage.output.store import Store


def drift_of(
    node: Node, graph: Graph, store: Store, observed: Observed, inputs: Mapping[str, str | None]
) -> tuple[tuple[Drift, ...], tuple[Kind, ...]]:
    """What changed since the output was made, and what cannot be told. `inputs`: manifest digests by step name."""
    facts = drifting_facts(node, graph, store, observed.record or {})
    return find_drift(observed.record, facts, inputs), not_recorded(observed.record, facts)


def remember(run_id: str, node: Node, observed: Observed) -> None:
    """Keep the digest of an output that the run has looked at."""
    _seen_in(run_id)[node.output] = manifest_digest(observed)


def input_digests(run_id: str, node: Node, store: Store, observed: Observed) -> dict[str, str | None]:
    """The manifest digests, as they are now, of the inputs whose digests the output's record holds."""
    recorded, seen = (observed.record or {}).get("inputs") or {}, _seen_in(run_id)
    wanted = {node.name: node.output for node in node.dependencies if recorded.get(node.name) is not None}
    looked = store.look(output for output in wanted.values() if output not in seen)
    seen.update((output, manifest_digest(found)) for output, found in looked.items())
    return {name: seen[output] for name, output in wanted.items()}


@lru_cache(maxsize=8)
def _seen_in(run_id: str) -> dict[Output, str | None]:
    """Of the last few runs of this process; it has one at a time, but for tests."""
    return {}

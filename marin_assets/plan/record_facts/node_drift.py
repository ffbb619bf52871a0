"""The drift of a complete output: its record compared with the node, the code and the inputs of today.

Inputs are compared by the digests of their manifests. A run observes each of its outputs anyway and keeps their
digests, so only inputs outside the run take another look.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from marin_assets.plan.record_facts.facts import SourcesNow, drifting_facts, manifest_digest
from marin_assets.step.graph import Graph, Node
from marin_resources.drift.drift import Drift, Kind, find_drift, not_recorded
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Observed, Output


def drift_of(
    node: Node, graph: Graph, store: Store, observed: Observed, inputs: Mapping[str, str | None]
) -> tuple[tuple[Drift, ...], tuple[Kind, ...]]:
    """The drift of the output, and the kinds of drift that its record cannot show. `inputs`: digests by step name."""
    facts = drifting_facts(node, graph, store, observed.record)
    return find_drift(observed.record, facts, inputs), not_recorded(observed.record, facts)


class DriftNow:
    """The drift of many complete outputs at one moment: the source of a function is read once for all of them."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph = graph
        self._store = store
        self._sources: SourcesNow = {}

    def of(self, node: Node, observed: Observed, inputs: Mapping[str, str | None]) -> tuple[Drift, ...]:
        """The drift of one output. `inputs`: digests by step name."""
        facts = drifting_facts(node, self._graph, self._store, observed.record, self._sources)
        return find_drift(observed.record, facts, inputs)


def input_digests(
    node: Node, store: Store, observed: Observed, digests: MutableMapping[Output, str | None]
) -> dict[str, str | None]:
    """Today's manifest digests of the inputs whose digests the output's record holds, by step name.

    `digests` holds those that the run knows already; it gets those that are looked up here.
    """
    recorded = observed.record.inputs or {}
    compared = {label: output for label, output in node.inputs.items() if recorded.get(label) is not None}
    looked = store.look(output for output in compared.values() if output not in digests)
    digests.update((output, manifest_digest(seen)) for output, seen in looked.items())
    return {name: digests[output] for name, output in compared.items()}

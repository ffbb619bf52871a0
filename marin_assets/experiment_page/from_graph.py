"""The steps of a page from an experiment of the code, or a script: their outputs as they are in the store now.

A complete output is compared with the code of today too: see `docs/explanation/drift.md`. Few outputs are read one by
one, many by their markers: see `plan/prepare.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from marin_assets.experiment_page.earlier_partitions import VersionOfNow, why_of_partitions
from marin_assets.experiment_page.page_steps import PageStep, PageSteps
from marin_assets.experiment_page.past_contents import past_contents
from marin_assets.plan.prepare import observe
from marin_assets.plan.reasons.causes import Causes, Why
from marin_assets.plan.reasons.read_inputs import waits_of
from marin_assets.plan.record_facts.facts import manifest_digest
from marin_assets.plan.record_facts.node_drift import DriftNow
from marin_assets.step.graph import Graph, Node
from marin_resources.drift.drift import Drift, without_plumbing
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.notes.collection import with_collected
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Observed, Output
from marin_resources.wire.reference import reference_to

MOST_COMPARED = 300
"""Partitions of a step that are compared with the code of today: the last ones."""


def steps_of_graph(title: str, graph: Graph, nodes: Sequence[Node], store: Store) -> PageSteps:
    """The page's steps for these nodes of the graph. Raises UnavailableError."""
    members = {node: _members(node, store) for node in nodes}
    complete = CompleteOutputs(store.prefix)
    outputs = [member for of_node in members.values() for member in of_node]
    observed = with_collected(store.prefix, observe(graph, store, outputs, complete))
    why = Causes(complete).of([node for node in nodes if node.step.partitions is None])
    of_partitions = why_of_partitions(store, map(_version_of, (n for n in nodes if n.step.partitions is not None)))
    past = past_contents(store, {node.output: observed[node.output] for node in outputs if node.key is None})
    now = DriftNow(graph, store)
    steps = [
        dataclasses.replace(
            _step(node, members[node], observed, why.get(node) or of_partitions.get(node.name)),
            path=store.locate(node.output),
            drift=_drift(members[node], now, observed),
            past=past.get(node.output),
        )
        for node in nodes
    ]
    return PageSteps(title=title, prefix=store.prefix, steps=steps)


def _version_of(node: Node) -> VersionOfNow:
    return VersionOfNow(
        name=node.name, hash=node.version.hash, fields=node.version.as_dict(), waits=waits_of(node.step)
    )


def _members(node: Node, store: Store) -> list[Node]:
    """The node, or one of each partition: of the keys in the code, and of all that have a folder."""
    if node.step.partitions is None:
        return [node]
    keys = dict.fromkeys([*(node.step.partitions.fixed_keys or ()), *store.partitions(node.output)])
    return [dataclasses.replace(node, key=key) for key in keys]


def _drift(
    members: Sequence[Node], now: DriftNow, observed: Mapping[Output, Observed]
) -> dict[str | None, Sequence[Drift]]:
    """The drift of a step's complete outputs, by key."""
    drift: dict[str | None, Sequence[Drift]] = {}
    done = [member for member in members if observed[member.output].done]
    for member in done[-MOST_COMPARED:]:
        digests = {label: manifest_digest(observed[output]) for label, output in member.inputs.items()}
        changed = without_plumbing(now.of(member, observed[member.output], digests))
        drift |= {member.key: changed} if changed else {}
    return drift


def _step(node: Node, members: Sequence[Node], observed: Mapping[Output, Observed], why: Why | None) -> PageStep:
    return PageStep(
        name=node.name,
        version=node.version.hash,
        parents=tuple(other.name for other in (*node.dependencies, *node.pseudo_dependencies)),
        function=reference_to(node.step.fn),
        description=node.step.description or "",
        outputs={member.key: observed[member.output] for member in members},
        is_partitioned=node.step.partitions is not None,
        origins=node.origins,
        variables=tuple(node.step.env),
        why=why,
    )

"""The facts with which incomplete outputs of a plan would be computed: config, code, environment, resources.

In:  a plan.   Out: JSON for a saved plan, and one sentence for each difference between such JSON and now.

An output that is reused holds these facts in its own record. They are compared as drift.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marin_assets.plan.plan import Action, Planned
from marin_assets.plan.record_facts.facts import SourcesNow, drifting_facts, facts_now, manifest_digest
from marin_assets.step.graph import Graph, Node
from marin_resources.drift.config import fields_of
from marin_resources.drift.drift import Kind, find_drift, without_plumbing
from marin_resources.storage.output.store import Store
from marin_resources.types.record import Record
from marin_resources.types.versioned_json import ANY, Required

SETTINGS = (
    *("resources", "extras", "env", "packages", "timeout_s", "progress_timeout_s", "own_job", "resumable"),
    "expectations",
)
"""Fields of a step that enter no version, and decide how it is computed or whether its run fails."""
COMPARED = "format_version"
"""A record without it is Marin's, whose config is not compared."""
SHAPE = {
    "runs": [{"step": Required(str), "partition": str, "settings": Required({ANY: object}), "facts": Required(dict)}],
    "sources": {ANY: dict},
}


def intended_as_json(planned: Sequence[Planned], graph: Graph, store: Store) -> dict[str, Any]:
    """The facts with which each output that is not reused would be computed. A source that several share is stored
    once."""
    runs, sources = [], {}
    digests = _digests(planned, store)
    for node in _computed(planned):
        facts = {**facts_now(node, graph, store), "inputs": digests[node]}
        if source := facts.pop("source_digest"):
            facts["source"] = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
            sources[facts["source"]] = source
        runs.append({"step": node.name, "partition": node.key, "settings": _settings(node), "facts": facts})
    return {"runs": runs, "sources": sources}


def differences_of(
    saved: Mapping[str, Any], planned: Sequence[Planned], graph: Graph, store: Store
) -> Iterator[tuple[Node | None, str]]:
    """The differences between the saved facts and today's; the node is None for one that concerns all. Outputs that the
    plan lacks, or that are saved without these facts, are left out."""
    runs = {(run["step"], run.get("partition")): run for run in saved.get("runs") or ()}
    sources: SourcesNow = {}
    digests = _digests(planned, store)
    environments = set()
    for node in _computed(planned):
        run = runs.get((node.name, node.key))
        if run is None:
            continue
        facts = {**run["facts"], "source_digest": (saved.get("sources") or {}).get(run["facts"].get("source"))}
        yield from ((node, sentence) for sentence in _settings_changed(run["settings"], _settings(node)))
        before = Record.from_dict({COMPARED: 1, **facts})
        drifts = find_drift(before, drifting_facts(node, graph, store, before, sources), digests[node])
        for drift in without_plumbing(drifts):
            if drift.kind is not Kind.ENVIRONMENT:
                yield node, drift.sentence()
            elif drift.what not in environments:
                environments.add(drift.what)
                yield None, drift.sentence()


def _computed(planned: Sequence[Planned]) -> Iterator[Node]:
    return (item.node for item in planned if item.action is not Action.REUSE)


def _digests(planned: Sequence[Planned], store: Store) -> dict[Node, dict[str, str | None]]:
    """The manifest digests of the inputs that the plan does not have, as they were not selected, by label."""
    planned_outputs = {item.node.output for item in planned}
    outside = {
        node: {label: output for label, output in node.inputs.items() if output not in planned_outputs}
        for node in _computed(planned)
    }
    looked = store.look(output for inputs in outside.values() for output in inputs.values())
    return {
        node: {label: manifest_digest(looked[output]) for label, output in inputs.items()}
        for node, inputs in outside.items()
    }


def _settings(node: Node) -> dict[str, Any]:
    """The node's settings as they are after a round trip through JSON."""
    settings = {name: _plain(getattr(node.step, name)) for name in SETTINGS}
    return json.loads(json.dumps(settings))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return [_plain(element) for element in value] if isinstance(value, list | tuple) else value


def _settings_changed(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    before, after = fields_of(was), fields_of(now)
    for field in sorted(before.keys() | after.keys()):
        if before.get(field) != after.get(field):
            yield f"Its {field} was {before.get(field)!r} and is {after.get(field)!r} now."

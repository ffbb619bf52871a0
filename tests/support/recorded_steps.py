"""Steps whose outputs are completed without a run, with the facts that a run would record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from record_fields import fields_of_record

from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import THIS_OUTPUT_PATH, output_path_of, versioned
from marin_resources.storage.completion.markers import seconds_of
from marin_resources.storage.files import remove_folder, write_bytes
from marin_resources.storage.output.attempts import latest_attempt
from marin_resources.storage.output.notes.history import FOLDER
from marin_resources.storage.output.store import Claim, Store
from marin_resources.storage.paths import join
from marin_resources.types.record import Record


@dataclass(frozen=True, kw_only=True)
class WorkConfig:
    value: Any = None
    note: str = ""
    """Unversioned."""
    inputs: tuple[Any, ...] = ()
    output_path: str = THIS_OUTPUT_PATH


def work(config: WorkConfig) -> None:
    return None


def step(name: str, value: Any = 1, *inputs: Step, note: str = "", **fields: Any) -> Step:
    read = tuple(map(output_path_of, inputs))
    return Step(name=name, fn=work, config=WorkConfig(value=versioned(value), note=note, inputs=read), **fields)


def chain(names: str, **values: Any) -> Step:
    """The last step of "a b c", each of which reads the one before; values by name."""
    last: list[Step] = []
    for name in names.split():
        last = [step(f"chain/{name}", values.get(name, 1), *last)]
    return last[0]


@dataclass(frozen=True)
class Recorded:
    """Completes outputs below a prefix."""

    store: Store

    def make(self, last: Step, *, result: Mapping[str, Any] | None = None, **facts: Any) -> Graph:
        """Complete the output of a step and those of its inputs that are missing; return the graph. `facts` and the
        result are those of the step itself."""
        graph = build_graph([last])
        for node in graph:
            if not self.store.look([node.output])[node.output].done:
                own = node is graph[last]
                self.publish(node, graph, facts if own else {}, result if own else None)
        return graph

    def publish(
        self, node: Node, graph: Graph, facts: Mapping[str, Any], result: Mapping[str, Any] | None = None
    ) -> None:
        claim = self.claim(node)
        write_bytes(join(claim.path, "value.json"), json.dumps(node.version.as_dict()).encode())
        self.store.publish(claim, {**self.facts_of(node, graph), **facts}, result or {})

    def claim(self, node: Node, attempt: int | None = None) -> Claim:
        number = attempt or latest_attempt(self.store.locate(node.output)) + 1
        return self.store.claim(node.output, attempt=number, resumable=False, run_id=None)

    def facts_of(self, node: Node, graph: Graph) -> dict[str, Any]:
        inputs = {label: self.store.look([output])[output] for label, output in node.inputs.items()}
        return describe_node(node, self.store, resolved_config(node, graph, self.store), inputs, None)

    def collect(self, node: Node) -> None:
        """Remove an output, and leave its record in the history."""
        path = self.store.locate(node.output)
        record = fields_of_record(path)
        assert record is not None
        below = join(self.store.prefix, FOLDER, node.output.relative(), f"{seconds_of(Record.from_dict(record))}.json")
        write_bytes(below, json.dumps(record).encode())
        remove_folder(path)

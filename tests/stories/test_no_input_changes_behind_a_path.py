"""Whatever is added, removed and made again: an output that is reused was made from what its version and key say."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from marin_assets import THIS_OUTPUT_PATH, Step, dynamic, output_path_of, partitions_of, this_partition
from marin_assets.defaults import default_snapshot
from marin_assets.documents.snapshots import SnapshotError, read_unchanged_snapshot
from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.step.graph import Node, build_graph
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Observed
from marin_resources.wire.config_json import decode

DELIVERIES, SNAPSHOTS = dynamic("deliveries"), dynamic("snapshots")
KEYS, NAMES = ("2026-01", "2026-02", "2026-03"), ("s1", "s2")


@dataclass(frozen=True, kw_only=True)
class RawConfig:
    key: str = this_partition()
    output_path: str = THIS_OUTPUT_PATH


@dataclass(frozen=True, kw_only=True)
class ReadConfig:
    reads: Any
    snapshot: bool = False
    output_path: str = THIS_OUTPUT_PATH


def write_raw(config: RawConfig) -> None:
    Path(config.output_path, "text.txt").write_text(f"the text of {config.key}")


def read_all(config: ReadConfig) -> None:
    """Note path and text of all that is read."""
    if config.snapshot:
        paths = [partition.path for partition in read_unchanged_snapshot(config.reads).values()]
    else:
        paths = config.reads if isinstance(config.reads, list) else [config.reads]
    seen = {path: Path(path, "text.txt").read_text() for path in paths}
    Path(config.output_path, "seen.json").write_text(json.dumps(seen))


RAW = Step(name="raw/deliveries", fn=write_raw, config=RawConfig(), partitions=DELIVERIES)
OWN = Step(name="own", fn=read_all, config=ReadConfig(reads=output_path_of(RAW)), partitions=DELIVERIES)
NAMED = Step(name="named", fn=read_all, config=ReadConfig(reads=partitions_of(RAW, KEYS[:2])))
SNAPSHOT = default_snapshot("deliveries", RAW, SNAPSHOTS)
OF_SNAPSHOT = Step(
    name="of_snapshot",
    fn=read_all,
    config=ReadConfig(reads=output_path_of(SNAPSHOT), snapshot=True),
    partitions=SNAPSHOTS,
)


class Deliveries(RuleBasedStateMachine):
    """Runs as the orchestrator and a worker do them, without Dagster and Ray."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.store = Store(self.folder)
        self.graph = build_graph([OWN, NAMED, OF_SNAPSHOT])
        self.made_from: dict[str, dict[str, str]] = {}
        """Path of a reader's output -> what it has read."""

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def look(self, node: Node) -> Observed:
        return self.store.look([node.output])[node.output]

    def run(self, node: Node) -> None:
        """Reuse the output, or compute it if its inputs are complete."""
        if self.look(node).done:
            return
        inputs = {label: self.store.look([output])[output] for label, output in node.inputs.items()}
        if not all(observed.done for observed in inputs.values()):
            return
        config = resolved_config(node, self.graph, self.store)
        attempt = 1 + len(list(Path(self.store.locate(node.output), ".marin/attempts").glob("*.json")))
        claim = self.store.claim(node.output, attempt=attempt, resumable=False, run_id=None)
        facts = describe_node(node, self.store, config, inputs, None)
        try:
            result = node.step.fn(decode(config)) or {}
        except (SnapshotError, ValueError) as error:
            self.store.fail(claim, facts, str(error), "")
            return
        self.store.publish(claim, facts, result)

    @rule(key=st.sampled_from(KEYS))
    def make_a_delivery(self, key: str) -> None:
        self.run(self.graph[RAW].at(key))

    @rule(key=st.sampled_from(KEYS))
    def remove_a_delivery(self, key: str) -> None:
        shutil.rmtree(self.store.locate(self.graph[RAW].at(key).output), ignore_errors=True)

    @rule(key=st.sampled_from(KEYS))
    def read_own(self, key: str) -> None:
        self.run(self.graph[OWN].at(key))

    @rule()
    def read_named(self) -> None:
        self.run(self.graph[NAMED])

    @rule(name=st.sampled_from(NAMES))
    def take_a_snapshot(self, name: str) -> None:
        self.run(self.graph[SNAPSHOT].at(name))

    @rule(name=st.sampled_from(NAMES))
    def read_a_snapshot(self, name: str) -> None:
        self.run(self.graph[OF_SNAPSHOT].at(name))

    @precondition(lambda self: Path(self.folder).exists())
    @invariant()
    def what_was_read_is_what_is_said(self) -> None:
        readers = [self.graph[OWN].at(key) for key in KEYS]
        readers += [self.graph[NAMED], *(self.graph[OF_SNAPSHOT].at(name) for name in NAMES)]
        for node in readers:
            observed = self.look(node)
            if not observed.done:
                continue
            seen = json.loads(Path(observed.path, "seen.json").read_text())
            assert self.made_from.setdefault(observed.path, seen) == seen, "it has changed"
            assert sorted(seen) == sorted(self.said(node)), "it was made from something else than it says"
            there = {path: file.read_text() for path in seen if (file := Path(path, "text.txt")).exists()}
            assert all(seen[path] == text for path, text in there.items()), "its input has changed"

    def said(self, node: Node) -> list[str]:
        """The paths that the node's version and key say it reads."""
        if node.step is not OF_SNAPSHOT:
            return [self.store.locate(output) for output in node.inputs.values()]
        listed = json.loads(
            Path(self.store.locate(self.graph[SNAPSHOT].at(str(node.key)).output), "partitions.json").read_text()
        )
        return [self.store.locate(self.graph[RAW].at(row["key"]).output) for row in listed["partitions"]]


Deliveries.TestCase.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
TestDeliveries = Deliveries.TestCase

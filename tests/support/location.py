"""The steps of one experiment with their outputs, for tests that look at them from a command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marin_assets.step.graph import Graph
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join

FILES: Mapping[str, bytes] = {
    "value.txt": b"1",
    "train/input_ids/data/c/0": bytes(range(256)),
    "train/ledger.json": b"{}",
}


@dataclass(frozen=True)
class Location:
    """The steps, and where their outputs lie."""

    name: str
    graph: Graph
    store: Store

    def path(self, name: str) -> str:
        [node] = [node for node in self.graph if node.name == name]
        return self.store.locate(node.output)

    def make(self, name: str) -> str:
        """Complete one output; returns its path."""
        [node] = [node for node in self.graph if node.name == name]
        claim = self.store.claim(node.output, attempt=1, resumable=False, run_id=None)
        for file, data in FILES.items():
            write_bytes(join(claim.path, file), data)
        self.store.publish(claim, {}, {})
        return claim.path

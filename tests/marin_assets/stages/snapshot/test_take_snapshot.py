"""Snapshots list what is complete at a moment."""

from __future__ import annotations

from pathlib import Path

import pytest
from partition_steps import part

from marin_assets.documents.snapshots import read_snapshot
from marin_assets.stages.snapshot.take_snapshot import NothingCompleteError, TakeSnapshotConfig, take_snapshot
from marin_assets.step.graph import Node, build_graph
from marin_assets.step.partitions.sets import dynamic
from marin_resources.storage.output.store import Store


@pytest.fixture
def node(tmp_path: Path) -> Node:
    step = part("deliveries", dynamic("deliveries"), tmp_path / "calls.txt")
    return build_graph([step])[step]


def begin(store: Store, node: Node, key: str, *, complete: bool = True) -> None:
    claim = store.claim(node.at(key).output, attempt=1, resumable=False, run_id=None)
    Path(claim.path, "value.txt").write_text(key)
    if complete:
        store.publish(claim, {"version": node.version.as_dict(), "name": node.name}, {})
    else:
        store.fail(claim, {}, "broken", "")


def test_of_a_delivery_that_was_taken_again_the_newest_complete_revision_is_listed(node: Node, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "prefix"))
    for key in ("a", "a@2", "a@10", "b", "b@2"):
        begin(store, node, key, complete=key != "b@2")
    out = str(tmp_path / "snapshot")
    found = take_snapshot(TakeSnapshotConfig(partitions_path=store.locate(node.output), output_path=out))
    assert list(read_snapshot(out)) == ["a@10", "b"]
    assert found == {"partitions": 2, "incomplete": 1, "superseded": 2, "bytes": len("a@10") + len("b")}


def test_nothing_complete_is_one_sentence(node: Node, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "prefix"))
    begin(store, node, "a", complete=False)
    config = TakeSnapshotConfig(partitions_path=store.locate(node.output), output_path=str(tmp_path / "snapshot"))
    with pytest.raises(NothingCompleteError, match=r"No partition of .* is complete, of 1 that were begun"):
        take_snapshot(config)

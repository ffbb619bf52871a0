"""What `marin run --launch` asks the daemon for."""

from __future__ import annotations

from pathlib import Path

from partition_steps import part

from marin_assets import static
from marin_assets.plan.partition_runs import runs_of
from marin_assets.run.queued_run import keys_of_nodes
from marin_assets.step.graph import build_graph


def test_all_keys_that_are_left_are_asked_for_whatever_runs_they_are_in(tmp_path: Path) -> None:
    keys = static("k0", "k1", "k2", "k3", "k4")
    source = part("source", None, tmp_path)
    parted = part("parted", keys, tmp_path, per_run=2, reads=source)
    graph = build_graph([parted, part("below", keys, tmp_path, reads=parted), part("done", None, tmp_path)])
    nodes = list(graph)
    runs = runs_of(nodes, lambda node: keys.keys if node.step.partitions else (), lambda of: keys.keys)
    by_name = {node.name: node for node in nodes}
    assert sum(by_name["parts/parted"] in run.nodes for run in runs) == 3
    complete = {by_name["parts/parted"].at("k1").output, by_name["parts/done"].output}
    outputs = {node.output for run in runs for node in run.outputs()} - complete
    found = {node.name: asked for node, asked in keys_of_nodes(runs, outputs).items()}
    assert found == {
        "parts/source": [],
        "parts/parted": ["k0", "k2", "k3", "k4"],
        "parts/below": ["k0", "k1", "k2", "k3", "k4"],
    }

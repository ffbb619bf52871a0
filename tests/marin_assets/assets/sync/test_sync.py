"""Dagster's history, lost and brought back from the store."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from partition_steps import part
from toy_steps import calls, toy

from marin_assets import dynamic
from marin_assets.assets.assemble import definitions_of
from marin_assets.assets.factory import asset_key
from marin_assets.assets.runs.run import run_graph
from marin_assets.assets.sync.differences import differences
from marin_assets.assets.sync.sync import report_unknown
from marin_assets.step.graph import Graph, build_graph
from marin_assets.step.step import Step
from marin_resources.storage.output.store import Store

pytestmark = pytest.mark.usefixtures("shared_ray")

OWN = ("reused", "synced", "drift", "drift_count", "waited_s")
"""Metadata that say how the materialization came about."""


def chain(value: int = 1) -> list[Step]:
    a = toy("a", value=value)
    return [a, toy("b", reads=a)]


def compute(graph: Graph, store: Store) -> None:
    """Complete all outputs, as another deployment would: unknown to this one's Dagster."""
    for node in graph:
        claim = store.claim(node.output, attempt=1, resumable=False, run_id=None)
        Path(claim.path, "value.txt").write_text("1")
        store.publish(claim, {"version": node.version.as_dict(), "name": node.name}, {"value": 1})


def sync(graph: Graph, store: Store) -> list[str]:
    """The labels of what Dagster did not know, and does now."""
    with dg.DagsterInstance.get() as instance:
        found = differences(instance, list(graph), store)
        assert found.damaged == found.vanished == []
        return [node.output.label for node in report_unknown(instance, found.unknown, store)]


def materializations(graph: Graph) -> dict[str, dg.AssetMaterialization]:
    """Name of a step -> its newest one."""
    found = {}
    with dg.DagsterInstance.get() as instance:
        for node in graph:
            event = instance.get_latest_materialization_event(asset_key(node))
            if event is not None and event.asset_materialization is not None:
                found[node.name] = event.asset_materialization
    return found


def staleness(graph: Graph) -> list[str]:
    with dg.DagsterInstance.get() as instance:
        assets = definitions_of(graph, {}).resolve_asset_graph()
        resolver = CachingStaleStatusResolver(instance, assets, LoadingContextForTest(instance))
        return [resolver.get_status(asset_key(node)).value for node in graph]


def lose_the_database(dagster_home: Path) -> None:
    for each in dagster_home.iterdir():
        if each.name != "dagster.yaml":
            shutil.rmtree(each) if each.is_dir() else each.unlink()


@pytest.fixture
def store(prefix: Path) -> Store:
    return Store(str(prefix))


def test_after_a_loss_of_the_database_each_complete_output_is_shown_as_before(
    store: Store, prefix: Path, dagster_home: Path
) -> None:
    graph = build_graph(chain())
    assert not run_graph("toy", graph, list(graph)).failures
    before = materializations(graph)
    assert sync(graph, store) == []
    lose_the_database(dagster_home)
    assert materializations(graph) == {}
    assert sync(graph, store) == ["toy/a", "toy/b"]
    after = materializations(graph)
    for name, event in after.items():
        shown = {key: value for key, value in event.metadata.items() if key not in OWN}
        assert shown == {key: value for key, value in before[name].metadata.items() if key not in OWN}
        assert event.metadata["synced"].value is True
    assert staleness(graph) == ["FRESH", "FRESH"]
    assert sync(graph, store) == []
    assert len(calls(prefix)) == 2


def test_another_version_is_unsynced_until_it_is_there_and_a_return_to_the_first_is_synced(
    store: Store, dagster_home: Path
) -> None:
    first, second = build_graph(chain(1)), build_graph(chain(2))
    compute(first, store)
    assert sync(first, store) == ["toy/a", "toy/b"]
    assert staleness(first) == ["FRESH", "FRESH"]
    assert sync(second, store) == []
    assert staleness(second) == ["STALE", "STALE"]
    compute(second, store)
    for graph in (second, first):
        assert sync(graph, store) == ["toy/a", "toy/b"]
        assert staleness(graph) == ["FRESH", "FRESH"]


def partitioned(folder: Path) -> Graph:
    return build_graph([part("deliveries", dynamic("deliveries"), folder / "calls.txt")])


def complete(graph: Graph, store: Store, keys: Sequence[str]) -> None:
    [node] = graph
    for key in keys:
        claim = store.claim(node.at(key).output, attempt=1, resumable=False, run_id=None)
        Path(claim.path, "value.txt").write_text(key)
        store.publish(claim, {"version": node.version.as_dict(), "name": node.name}, {"value": 1})


def test_partitions_come_back_each_with_its_own_materialization(
    store: Store, dagster_home: Path, tmp_path: Path
) -> None:
    graph = partitioned(tmp_path)
    [node] = graph
    complete(graph, store, ["a", "b", "c d/e"])
    assert sync(graph, store) == ["parts/deliveries[a]", "parts/deliveries[b]", "parts/deliveries[c d/e]"]
    complete(graph, store, ["f"])
    assert sync(graph, store) == ["parts/deliveries[f]"]
    with dg.DagsterInstance.get() as instance:
        assert instance.get_materialized_partitions(asset_key(node)) == {"a", "b", "c d/e", "f"}
        [record] = instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=asset_key(node), asset_partitions=["c d/e"]), limit=9
        ).records
    assert record.asset_materialization is not None
    assert record.asset_materialization.metadata["path"].value == store.locate(node.at("c d/e").output)


def test_an_output_that_vanishes_in_between_is_left_out(store: Store, dagster_home: Path) -> None:
    graph = build_graph(chain())
    compute(graph, store)
    with dg.DagsterInstance.get() as instance:
        unknown = differences(instance, list(graph), store).unknown
        shutil.rmtree(store.locate(unknown[0].output))
        assert [node.name for node in report_unknown(instance, unknown, store)] == ["toy/b"]


def test_a_damaged_output_is_named_and_the_others_are_synced(store: Store, dagster_home: Path) -> None:
    graph = build_graph(chain())
    compute(graph, store)
    a = next(iter(graph))
    Path(store.locate(a.output), ".executor_info").write_text("{")
    with dg.DagsterInstance.get() as instance:
        found = differences(instance, list(graph), store)
    assert [node.name for node in found.unknown] == ["toy/b"]
    [damage] = found.damaged
    assert store.locate(a.output) in damage

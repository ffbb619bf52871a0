"""What has vanished from the store shows as missing, and nothing else does."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from partition_steps import part
from toy_steps import toy

from marin_assets import static
from marin_assets.assets.assemble import definitions_of
from marin_assets.assets.factory import asset_key
from marin_assets.assets.sync.differences import differences
from marin_assets.assets.sync.missing_outputs import mark_missing
from marin_assets.assets.sync.sync import report_unknown
from marin_assets.step.graph import Graph, Node, build_graph
from marin_resources.storage.output.store import Claim, Store
from marin_resources.types.output import Output

KEYS = ("a", "b", "c")


@pytest.fixture
def store(prefix: Path) -> Store:
    return Store(str(prefix))


def claim(store: Store, output: Output, attempt: int = 1) -> Claim:
    return store.claim(output, attempt=attempt, resumable=False, run_id=None)


def complete(node: Node, store: Store, attempt: int = 1) -> None:
    claimed = claim(store, node.output, attempt)
    Path(claimed.path, "value.txt").write_text("1")
    partition = {} if node.key is None else {"partition": node.key}
    store.publish(claimed, {"version": node.version.as_dict(), "name": node.name, **partition}, {"value": 1})


def remove(node: Node, store: Store) -> None:
    shutil.rmtree(store.locate(node.output))


def sync(instance: dg.DagsterInstance, graph: Graph, store: Store) -> tuple[list[str], list[str]]:
    """The labels of what Dagster knows now, and of what it has forgotten."""
    found = differences(instance, list(graph), store)
    known = [node.output.label for node in report_unknown(instance, found.unknown, store)]
    return known, [node.output.label for node in mark_missing(instance, found.vanished, store)]


def shown(instance: dg.DagsterInstance, graph: Graph, partition: str | None = None) -> list[str]:
    assets = definitions_of(graph, {}).resolve_asset_graph()
    resolver = CachingStaleStatusResolver(instance, assets, LoadingContextForTest(instance))
    return [resolver.get_status(asset_key(node), partition).value for node in graph]


def chain(value: int = 1) -> Graph:
    a = toy("a", value=value)
    return build_graph([a, toy("b", reads=a)])


def test_an_output_that_was_removed_shows_as_missing_and_when_it_is_back_as_fresh(
    store: Store, instance: dg.DagsterInstance
) -> None:
    graph = chain()
    a, b = graph
    complete(a, store)
    complete(b, store)
    sync(instance, graph, store)
    remove(a, store)
    assert sync(instance, graph, store) == ([], ["toy/a"])
    assert shown(instance, graph)[0] == "MISSING"
    assert instance.get_latest_materialization_event(asset_key(a)) is None
    assert sync(instance, graph, store) == ([], [])
    complete(a, store)
    assert sync(instance, graph, store) == (["toy/a"], [])
    assert shown(instance, graph) == ["FRESH", "FRESH"]


def test_another_version_is_unsynced_and_what_is_held_failed_or_damaged_is_told_apart(
    store: Store, instance: dg.DagsterInstance
) -> None:
    first, second = chain(1), chain(2)
    for node in first:
        complete(node, store)
    sync(instance, first, store)
    assert sync(instance, second, store) == ([], [])
    assert shown(instance, second) == ["STALE", "STALE"]
    a, b = first
    remove(a, store)
    held = claim(store, a.output)
    assert sync(instance, first, store) == ([], [])  # it is being computed
    store.fail(held, {}, "no", "no")
    Path(store.locate(b.output), ".executor_status").write_text("garbage")
    found = differences(instance, list(first), store)
    assert ([node.name for node in found.vanished], len(found.damaged)) == (["toy/a"], 1)


def test_what_comes_back_while_it_is_forgotten_is_shown(
    store: Store, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = chain()
    a, b = graph
    for node in graph:
        complete(node, store)
    sync(instance, graph, store)
    for node in graph:
        remove(node, store)
    found = differences(instance, list(graph), store)
    complete(a, store)  # before the wipe
    wipe = dg.DagsterInstance.wipe_assets

    def complete_too(self: dg.DagsterInstance, keys: object) -> None:
        complete(b, store)
        report_unknown(instance, [b], store)
        wipe(self, keys)  # type: ignore[arg-type]

    monkeypatch.setattr(dg.DagsterInstance, "wipe_assets", complete_too)
    assert list(mark_missing(instance, found.vanished, store)) == []
    assert shown(instance, graph) == ["FRESH", "FRESH"]


def test_a_partition_that_was_removed_shows_as_missing_and_the_others_keep_their_history(
    store: Store, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    old = build_graph([part("shards", static(*KEYS), tmp_path / "calls.txt")])
    new = build_graph([part("shards", static(*KEYS), tmp_path / "calls.txt", value=2)])
    [was], [node] = old, new
    complete(was.at("c"), store)
    sync(instance, old, store)
    for key in "ab":
        complete(node.at(key), store)
    assert sync(instance, new, store) == (["parts/shards[a]", "parts/shards[b]"], [])
    remove(node.at("b"), store)
    assert sync(instance, new, store) == ([], ["parts/shards[b]"])
    assert [shown(instance, new, key) for key in KEYS] == [["FRESH"], ["MISSING"], ["STALE"]]
    assert instance.get_materialized_partitions(asset_key(node)) == {"a", "c"}
    complete(node.at("b"), store)
    assert sync(instance, new, store) == (["parts/shards[b]"], [])
    for key in "ab":
        remove(node.at(key), store)
    assert sync(instance, new, store) == ([], ["parts/shards[a]", "parts/shards[b]"])
    assert instance.get_materialized_partitions(asset_key(node)) == {"c"}


def test_a_key_that_its_set_has_no_more_is_left_alone(
    store: Store, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    graph = build_graph([part("shards", static(*KEYS), tmp_path / "calls.txt")])
    [node] = graph
    for key in KEYS:
        complete(node.at(key), store)
    sync(instance, graph, store)
    fewer = build_graph([dataclasses.replace(node.step, partitions=static("a"))])
    remove(node.at("b"), store)
    assert sync(instance, fewer, store) == ([], [])


def test_a_damaged_record_is_named_however_many_outputs_there_are(
    store: Store, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    keys = static("a", "b")
    steps = [toy(f"s{number}") for number in range(301)]
    graph = build_graph([*steps, part("shards", keys, tmp_path / "calls.txt")])
    shards = next(node for node in graph if node.step.partitions is not None)
    for one in [graph[steps[7]], shards.at("a"), shards.at("b")]:
        complete(one, store)
    sync(instance, graph, store)
    for one in (graph[steps[7]], shards.at("a")):
        Path(store.locate(one.output), ".executor_info").write_text("[")
    found = differences(instance, list(graph), store)
    assert (found.vanished, found.unknown) == ([], [])
    assert [".executor_info" in sentence for sentence in found.damaged] == [True, True]

"""Drift of partitions, and of what reads them, in a plan: of few, which are read file by file, and of many."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bucket_for_tests import BucketForTests
from partition_steps import keys, part

from marin_assets.plan.plan import Action
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.plan.render.text import lines_of
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.partitions.reads import partitions_of
from marin_assets.step.partitions.sets import static
from marin_assets.step.step import Step
from marin_resources.storage.completion import packs
from marin_resources.storage.files import remove_folder, write_bytes
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join

FEW, BULK = {"exact_up_to": 300}, {"exact_up_to": 0}
CALLS = Path("calls.txt")
TWO = static("a", "b")


def outputs_of(graph: Graph) -> list[Node]:
    return [
        one
        for node in graph
        for one in ([node] if node.step.partitions is None else map(node.at, node.step.partitions.fixed_keys or ()))
    ]


def publish(store: Store, steps: Sequence[Step], text: str = "12345") -> None:
    """Complete what is not complete."""
    graph = build_graph(steps)
    for node in outputs_of(graph):
        if store.look([node.output])[node.output].done:
            continue
        seen = {label: store.look([output])[output] for label, output in node.inputs.items()}
        facts = describe_node(node, store, resolved_config(node, graph, store), seen, None)
        claimed = store.claim(node.output, attempt=1, resumable=False, run_id=None)
        write_bytes(join(claimed.path, "data.txt"), text.encode())
        store.publish(claimed, facts, {})


def reasons(store: Store, steps: Sequence[Step], **how: Any) -> dict[str, str]:
    graph = build_graph(steps)
    planned = prepare_plan(graph, store, outputs_of(graph), **how)
    assert {item.action for item in planned} == {Action.REUSE}
    return {item.label: item.reason for item in planned}


def family(note: str) -> list[Step]:
    """A source, its reader key by key, and one without partitions that reads both keys."""
    source = part("source", TWO, CALLS, gate=note)
    return [part("reader", TWO, CALLS, reads=source), part("all", None, CALLS, reads=partitions_of(source))]


@pytest.mark.parametrize("how", [FEW, BULK])
def test_an_unversioned_field_that_changed_is_drift_of_each_partition(
    disk_or_gcs_prefix: str, how: dict[str, Any]
) -> None:
    store = Store(disk_or_gcs_prefix)
    publish(store, [part("source", TWO, CALLS, gate="a1")])
    assert set(reasons(store, [part("source", TWO, CALLS, gate="a2")], **how).values()) == {
        "complete; since it was computed, the unversioned field 'gate' ('a1', now 'a2') changed"
    }
    assert set(reasons(store, [part("source", TWO, CALLS, gate="a1")], **how).values()) == {"complete"}


@pytest.mark.parametrize("how", [FEW, BULK])
def test_readers_of_a_partition_that_was_made_again_with_other_content_drift_and_the_others_do_not(
    disk_prefix: str, how: dict[str, Any]
) -> None:
    store, steps = Store(disk_prefix), family("a1")
    publish(store, steps)
    assert set(reasons(store, steps, **how).values()) == {"complete"}
    graph = build_graph(steps)
    [source] = [node for node in graph if node.name == "parts/source"]
    remove_folder(store.locate(source.at("a").output))
    publish(store, steps, "other content")
    changed = "complete; since it was computed, the input 'parts/source[a]' changed"
    assert reasons(store, steps, **how) == {
        "parts/source[a]": "complete",
        "parts/source[b]": "complete",
        "parts/reader[a]": changed,
        "parts/reader[b]": "complete",
        "parts/all": changed,
    }


@pytest.mark.parametrize("how", [FEW, BULK])
def test_one_partition_with_drift_is_apart_from_the_others(disk_prefix: str, how: dict[str, Any]) -> None:
    store = Store(disk_prefix)
    publish(store, [part("source", static("a"), CALLS, gate="a1")])
    steps = [part("source", TWO, CALLS, gate="a2")]
    publish(store, steps)
    graph = build_graph(steps)
    lines = list(lines_of(prepare_plan(graph, store, outputs_of(graph), **how)))
    path = store.locate(graph[steps[0]].output)
    assert lines[:4] == [
        f"reuse    {path}  [a]",
        "         complete; since it was computed, the unversioned field 'gate' ('a1', now 'a2') changed",
        f"reuse    {path}  [b]",
        "         complete",
    ]


@pytest.fixture
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "FEWEST_RECORDS", 4)


@pytest.mark.usefixtures("small_packs")
def test_the_drift_of_many_partitions_takes_few_requests(gcs_bucket: BucketForTests) -> None:
    many = static(*keys(12))
    store, step = Store(gcs_bucket.prefix), part("source", many, CALLS, gate="a1")
    publish(store, [step])
    changed = [part("source", many, CALLS, gate="a2")]
    first = reasons(store, changed, **BULK)  # packs the records
    before = gcs_bucket.requests_made()
    assert reasons(store, changed, **BULK) == first
    assert gcs_bucket.requests_made() - before <= 8
    assert all(reason.endswith("the unversioned field 'gate' ('a1', now 'a2') changed") for reason in first.values())


@pytest.mark.usefixtures("small_packs")
def test_a_partition_that_was_made_again_is_not_what_a_pack_says(disk_prefix: str) -> None:
    many = static(*keys(6))
    store = Store(disk_prefix)
    old, new = ([part("source", many, CALLS, gate=note)] for note in ("a1", "a2"))
    publish(store, old)
    reasons(store, new, **BULK)
    assert packs.names_of_packs(store.prefix)
    graph = build_graph(new)
    remove_folder(store.locate(graph[new[0]].at("k0003").output))
    publish(store, new, "other content")
    found = reasons(store, new, **BULK)
    assert [label for label, reason in found.items() if reason == "complete"] == ["parts/source[k0003]"]


@pytest.mark.parametrize("how", [FEW, BULK])
def test_a_damaged_record_blocks_its_partition_alone(disk_prefix: str, how: dict[str, Any]) -> None:
    store, steps = Store(disk_prefix), [part("source", TWO, CALLS)]
    publish(store, steps)
    graph = build_graph(steps)
    write_bytes(f"{store.locate(graph[steps[0]].at('a').output)}/.executor_info", b"[")
    planned = prepare_plan(graph, store, outputs_of(graph), **how)
    assert [item.action for item in planned] == [Action.BLOCKED, Action.REUSE]
    assert ".executor_info" in planned[0].reason

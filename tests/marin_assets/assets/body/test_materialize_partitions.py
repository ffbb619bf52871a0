"""Partitions of a step in runs: each is an output and a materialization of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from partition_steps import called, keys, part

from marin_assets.assets.assemble import definitions_of
from marin_assets.assets.factory import asset_key
from marin_assets.assets.runs.run import RunResult, run_graph
from marin_assets.assets.sync.sync import report_reused
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.partitions.sets import static
from marin_assets.step.step import Step
from marin_resources.storage.output.store import Store

pytestmark = pytest.mark.usefixtures("shared_ray")

KEYS = static(*keys(10))


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls.txt"


def publish(store: Store, node: Node) -> None:
    """Make the output complete, as a worker does."""
    version = {"version": node.version.as_dict(), "name": node.name}
    store.publish(store.claim(node.output, attempt=1, resumable=False, run_id=None), version, {"length": 5})


def materializations(step: Step) -> dict[str, dict[str, Any]]:
    """Key -> metadata of its last materialization."""
    asset = dg.AssetKey(step.name.split("/"))
    with dg.DagsterInstance.get() as instance:
        found = instance.fetch_materializations(asset, limit=1000, ascending=True).records
    return {
        str(record.partition_key): {name: value.value for name, value in record.asset_materialization.metadata.items()}
        for record in found
        if record.asset_materialization is not None
    }


def run(graph: Graph, wanted: Sequence[str], *, cpus: int = 2) -> RunResult:
    return run_graph("parts", graph, list(graph), keys=wanted)


def test_each_partition_that_is_reused_is_a_materialization_with_its_own_metadata(
    prefix: Path, dagster_home: Path, calls: Path
) -> None:
    step = part("a", KEYS, calls)
    graph, store = build_graph([step]), Store(str(prefix))
    for key in KEYS.keys:
        publish(store, graph[step].at(key))
    result = run(graph, KEYS.keys)
    assert (result.computed, result.reused, result.failures) == (0, 10, ())
    shown = materializations(step)
    version = graph[step].version
    assert {key: shown[key]["path"] for key in shown} == {key: f"{prefix}/{version.path}/{key}" for key in KEYS.keys}
    assert all(each["reused"] is True and each["length"] == 5 for each in shown.values())
    assert called(calls) == []


def tags(step: Step) -> dict[str, dict[str, str]]:
    """Key -> Marin's tags of its last materialization."""
    asset = dg.AssetKey(step.name.split("/"))
    with dg.DagsterInstance.get() as instance:
        found = instance.fetch_materializations(asset, limit=1000, ascending=True).records
    return {
        str(record.partition_key): {
            name: value for name, value in (each.tags or {}).items() if name.startswith("marin/")
        }
        for record in found
        if (each := record.asset_materialization) is not None
    }


def with_drift(store: Store, calls: Path, **fields: Any) -> Step:
    """A step of three partitions: "a" was made with another field, "b" with this one, "c" was not made."""
    three = static("a", "b", "c")
    for key, gate in (("a", "old"), ("b", "new")):
        step = part("a", three, calls, gate=gate, **fields)
        graph = build_graph([step])
        one = graph[step].at(key)
        facts = describe_node(one, store, resolved_config(one, graph, store), {}, None)
        store.publish(store.claim(one.output, attempt=1, resumable=False, run_id=None), facts, {"length": 1})
    return step


def test_a_partition_that_drifts_says_so_first_and_by_its_tag_and_another_one_does_not(
    prefix: Path, dagster_home: Path, calls: Path
) -> None:
    step = with_drift(Store(str(prefix)), calls)
    result = run(build_graph([step]), ["a", "b"])
    assert (result.computed, result.reused) == (0, 2)
    reused = {"marin/reused": "true"}
    assert tags(step) == {"a": {**reused, "marin/drift": "true"}, "b": reused}
    shown = materializations(step)
    sentence = "- The unversioned field 'gate' was 'old' and is 'new' now."
    assert list(shown["a"].items())[:2] == [("drift_count", 1), ("drift", sentence)]
    assert "drift" not in shown["b"]


def test_what_a_plan_reuses_is_shown_with_its_drift_and_reported_once(
    prefix: Path, dagster_home: Path, calls: Path
) -> None:
    """Also if Dagster knows the partition already, and again when the drift is gone."""
    store = Store(str(prefix))
    new, old = with_drift(store, calls), part("a", static("a", "b"), calls, gate="old")

    def report(step: Step) -> int:
        graph = build_graph([step])
        planned = prepare_plan(graph, store, [graph[step].at(key) for key in ("a", "b")])
        with dg.DagsterInstance.get() as instance:
            before = len(instance.fetch_materializations(asset_key(graph[step]), limit=100).records)
            report_reused(instance, planned, graph, store, {})
            return len(instance.fetch_materializations(asset_key(graph[step]), limit=100).records) - before

    reported = [report(step) for step in (new, new, old, old)]
    assert reported == [2, 0, 2, 0]
    assert {key: "marin/drift" in each for key, each in tags(old).items()} == {"a": False, "b": True}


@pytest.mark.long
def test_a_partition_that_drifts_says_so_also_if_another_one_fails(
    prefix: Path, dagster_home: Path, calls: Path
) -> None:
    step = with_drift(Store(str(prefix)), calls, bad=("c",))
    assert len(run(build_graph([step]), ["a", "b", "c"]).failures) == 1
    assert {key: "marin/drift" in each for key, each in tags(step).items()} == {"a": True, "b": False}


def test_of_partitions_that_fail_the_others_are_complete_and_shown(
    prefix: Path, dagster_home: Path, calls: Path
) -> None:
    bad = part("a", KEYS, calls, bad=("k0003", "k0007"))
    result = run(build_graph([bad]), KEYS.keys)
    assert (result.computed, result.reused) == (8, 0)
    [sentence] = result.failures
    assert sentence.startswith("2 of 10 partitions of 'parts/a' failed. Step 'parts/a[k0003]' failed: ValueError: ")
    assert "Step 'parts/a[k0007]' failed: ValueError: the key 'k0007' is not liked." in sentence
    assert sorted(materializations(bad)) == sorted(set(KEYS.keys) - {"k0003", "k0007"})
    again = run(build_graph([part("a", KEYS, calls)]), KEYS.keys)
    assert (again.computed, again.reused, again.failures) == (2, 8, ())
    assert sorted(materializations(bad)) == sorted(KEYS.keys)
    assert called(calls) == sorted([*(f"a[{key}]" for key in KEYS.keys), "a[k0003]", "a[k0007]"])


def test_the_complete_partitions_of_a_step_that_fails_are_not_unsynced(
    prefix: Path, dagster_home: Path, calls: Path
) -> None:
    two = static("good", "bad")
    source = part("a", two, calls)
    graph = build_graph([source, part("b", two, calls, reads=source, bad=("bad",))])
    assert len(run(graph, two.keys).failures) == 1
    with dg.DagsterInstance.get() as instance:
        assets = definitions_of(graph, {}).resolve_asset_graph()
        resolver = CachingStaleStatusResolver(instance, assets, LoadingContextForTest(instance))
        found = {key: resolver.get_status(dg.AssetKey(["parts", "b"]), key).value for key in two.keys}
    assert found == {"good": "FRESH", "bad": "MISSING"}


def test_a_file_in_the_place_of_a_partition_is_one_sentence_and_the_others_are_made(
    prefix: Path, dagster_home: Path, calls: Path
) -> None:
    step = part("a", static("a", "b"), calls)
    graph = build_graph([step])
    place = Path(Store(str(prefix)).locate(graph[step].at("b").output))
    place.parent.mkdir(parents=True)
    place.write_text("somebody's notes")
    result = run(graph, ("a", "b"))
    assert result.computed == 1
    [sentence] = result.failures
    assert f"'{place}" in sentence
    assert "a file is in its place. Move that file aside" in sentence
    assert place.read_text() == "somebody's notes"
    place.unlink()
    assert run(graph, ("a", "b")).computed == 1


@pytest.mark.long
def test_of_100_partitions_of_which_3_fail_97_are_complete(prefix: Path, dagster_home: Path, calls: Path) -> None:
    hundred, bad = static(*keys(100)), ("k0011", "k0042", "k0099")
    step = part("a", hundred, calls, bad=bad)
    result = run(build_graph([step]), hundred.keys)
    assert (result.computed, result.reused) == (97, 0)
    [sentence] = result.failures
    assert sentence.startswith("3 of 100 partitions of 'parts/a' failed. ")
    for key in bad:
        assert f"Step 'parts/a[{key}]' failed: ValueError: the key '{key}' is not liked." in sentence
    assert sorted(materializations(step)) == sorted(set(hundred.keys) - set(bad))
    again = run(build_graph([part("a", hundred, calls)]), hundred.keys)
    assert (again.computed, again.reused, again.failures) == (3, 97, ())


def test_a_reader_reads_its_own_partition(prefix: Path, dagster_home: Path, calls: Path) -> None:
    raw = part("raw", KEYS, calls)
    reader = part("reader", KEYS, calls, reads=raw)
    graph, store = build_graph([reader]), Store(str(prefix))
    result = run(graph, KEYS.keys[2:4])
    assert (result.computed, result.failures) == (4, ())
    assert called(calls) == ["raw[k0002]", "raw[k0003]", "reader[k0002]", "reader[k0003]"]
    one = graph[reader].at("k0002")
    record = store.look([one.output])[one.output].record.to_dict()
    assert record["partition"] == "k0002"
    assert list(record["inputs"]) == ["parts/raw[k0002]"]
    assert record["dependencies"] == [store.locate(graph[raw].at("k0002").output)]
    assert record["config"]["reads"] == record["dependencies"][0]


def test_steps_below_go_on_with_the_partitions_that_are_complete(prefix: Path, dagster_home: Path, calls: Path) -> None:
    few = static(*keys(4))
    raw = part("raw", few, calls, bad=("k0001",))
    words = part("words", few, calls, reads=raw, bad=("k0002",))
    tokens = part("tokens", few, calls, reads=words)
    result = run(build_graph([tokens]), few.keys)
    assert (result.computed, result.reused) == (3 + 2 + 2, 0)
    assert [sentence.partition(" failed. ")[0] for sentence in result.failures] == [
        "1 of 4 partitions of 'parts/raw'",
        "2 of 4 partitions of 'parts/words'",
        "2 of 4 partitions of 'parts/tokens'",
    ]
    assert "Step 'parts/words[k0001]' needs 'parts/raw[k0001]'" in result.failures[1]
    assert sorted(materializations(tokens)) == ["k0000", "k0003"]
    again = run(build_graph([part("raw", few, calls)]), few.keys)
    assert (again.computed, again.reused) == (1, 3)


def test_steps_below_one_without_a_complete_partition_are_not_executed(
    prefix: Path, dagster_home: Path, calls: Path
) -> None:
    raw = part("raw", static("a"), calls, bad=("a",))
    result = run(build_graph([part("words", static("a"), calls, reads=raw)]), ["a"])
    assert [sentence.partition(":")[0] for sentence in result.failures] == ["Step 'parts/raw[a]' failed"]


def test_a_missing_input_is_named_with_its_key(prefix: Path, dagster_home: Path, calls: Path) -> None:
    raw = part("raw", KEYS, calls)
    graph = build_graph([part("reader", KEYS, calls, reads=raw)])
    nodes = [node for node in graph if node.name == "parts/reader"]
    result = run_graph("parts", graph, nodes, keys=["k0002"])
    [sentence] = result.failures
    assert "Step 'parts/reader[k0002]' needs 'parts/raw[k0002]'" in sentence


def test_a_marker_that_is_absent_is_written_by_the_next_run(prefix: Path, dagster_home: Path, calls: Path) -> None:
    step = part("a", KEYS, calls)
    graph, store = build_graph([step]), Store(str(prefix))
    whole = graph[step].output
    for key in KEYS.keys:
        publish(store, graph[step].at(key))
    before = store.done_partitions(whole)
    assert sorted(before) == sorted(KEYS.keys)
    for marker in (prefix / ".marin/done").glob("parts/a-*/k0004.*"):
        marker.unlink()
    assert "k0004" not in store.done_partitions(whole)
    run(graph, KEYS.keys)
    assert store.done_partitions(whole) == before


@pytest.mark.parametrize("at_once", [1, 3])
def test_at_most_its_limit_of_partitions_is_in_flight(
    prefix: Path, dagster_home: Path, calls: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from marin_assets.assets.body import materialize as module

    running, most = 0, 0
    produce = module.produce_output

    async def counted(*args: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await produce(*args)
        finally:
            running -= 1

    monkeypatch.setattr(module, "produce_output", counted)
    step = part("a", KEYS, calls)
    graph = build_graph([step])
    config: Callable[[], dict[str, Any]] = lambda: {"ray_tpu": {"config": {"partitions_at_once": at_once}}}  # noqa: E731
    from marin_assets.assets.assemble import definitions_of

    job = definitions_of(graph, {"parts": list(graph)}).resolve_job_def("parts")
    with dg.DagsterInstance.get() as instance:
        from dagster._core.definitions.job_base import InMemoryJob
        from dagster._core.execution.api import create_execution_plan, execute_run

        run_config = {"resources": config()}
        tags = {"dagster/asset_partition_range_start": "k0000", "dagster/asset_partition_range_end": "k0005"}
        created = instance.create_run_for_job(
            job, run_config=run_config, tags=tags, execution_plan=create_execution_plan(job, run_config)
        )
        assert execute_run(InMemoryJob(job), created, instance).success
    assert most == at_once

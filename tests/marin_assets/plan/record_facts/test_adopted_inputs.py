"""What is made from adopted outputs: it reads data where they are, its record says so, and nothing has drifted."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import object_stores
import pytest
from fleets import use, write_catalogue
from partition_steps import part
from toy_steps import toy

from marin_assets import Step, dynamic, mirrored, output_path_of
from marin_assets.assets.body.request import copies_for
from marin_assets.documents.snapshots import SnapshotError, read_unchanged_snapshot
from marin_assets.experiments.two_steps import NumbersConfig, StatsConfig, compute_stats, make_numbers
from marin_assets.plan.plan import Action, plan
from marin_assets.plan.prepare import prepare_plan, with_sites
from marin_assets.plan.record_facts.adopted_inputs import adopted_inputs, facts_of_adopted, made_from
from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.plan.record_facts.node_drift import drift_of
from marin_assets.plan.sites.needs import needs_of
from marin_assets.stages.report.records import parents_of, read_records
from marin_assets.stages.report.report import ReportConfig, write_report
from marin_assets.stages.snapshot.take_snapshot import TakeSnapshotConfig, take_snapshot
from marin_assets.step.graph import Graph, Node, build_graph
from marin_resources.hardware.resources import tpu
from marin_resources.ray_tpu.fleet.choose import choose_site
from marin_resources.ray_tpu.fleet.fleet import Fleet, fleet_from_env
from marin_resources.ray_tpu.site import NoSiteError
from marin_resources.storage.adoption.adopt import adopt
from marin_resources.storage.adoption.records import records_at
from marin_resources.storage.adoption.source import find_source
from marin_resources.storage.adoption.undo import undo
from marin_resources.storage.completion.markers import write_mark
from marin_resources.storage.files import write_bytes
from marin_resources.storage.index.complete import CompleteOutputs
from marin_resources.storage.output.attempts import latest_attempt
from marin_resources.storage.output.store import Store
from marin_resources.storage.output.verify import verify_output
from marin_resources.types.output import Observed
from marin_resources.types.record import Record
from marin_resources.wire.config_json import decode, plain

DATA = Step(name="hello/data", fn=make_numbers, config=NumbersConfig())
STATS = Step(name="hello/stats", fn=compute_stats, config=StatsConfig(input_path=output_path_of(DATA)))


class World:
    """Steps that are computed here as an orchestrator and a worker do it, without Dagster and Ray."""

    def __init__(self, store: Store, steps: Sequence[Step]) -> None:
        self.store, self.graph = store, build_graph(steps)

    def node(self, name: str) -> Node:
        return next(node for node in self.graph if node.name == name)

    def look(self, node: Node) -> Observed:
        return self.store.look([node.output])[node.output]

    def adopt(self, node: Node, given: str) -> None:
        source = find_source(given, self.store, node.output, checksums=False)
        facts = facts_of_adopted(node, self.store, source)
        adopt(self.store, node.output, source, facts, why="renamed", by="me")

    def compute(self, node: Node) -> Observed:
        inputs = {label: self.store.look([output])[output] for label, output in node.inputs.items()}
        config = resolved_config(node, self.graph, self.store, inputs=inputs)
        facts = describe_node(node, self.store, config, inputs, None)
        attempt = latest_attempt(self.store.locate(node.output)) + 1
        claim = self.store.claim(node.output, attempt=attempt, resumable=False, run_id=None)
        self.store.publish(claim, facts, node.step.fn(decode(config)) or {})
        return self.look(node)

    def drift(self, node: Node) -> list[str]:
        seen = self.look(node)
        return [each.sentence() for each in drift_of(node, self.graph, self.store, seen, {})[0]]


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """Numbers that were made by hand."""
    path = tmp_path / "mine"
    path.mkdir()
    (path / "numbers.json").write_text(json.dumps([1, 2, 3]))
    return str(path)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(Store(str(tmp_path / "prefix")), [STATS])


def test_a_reader_gets_the_path_of_the_data_and_records_from_where(world: World, mine: str) -> None:
    data, stats = world.graph
    world.adopt(data, mine)
    record = world.compute(stats).record.to_dict()
    assert record["result"]["sum"] == 6
    assert record["config"]["input_path"] == mine
    assert record["dependencies"] == [mine]
    assert record["adopted_inputs"] == {"hello/data": {"from": mine, "why": "renamed"}}
    assert made_from(world.graph, data, world.store, mine) == ["hello/stats"]


def test_a_reader_has_not_drifted_before_after_and_beside_an_undo(world: World, mine: str) -> None:
    data, stats = world.graph
    world.adopt(data, mine)
    world.compute(stats)
    assert world.drift(stats) == []
    assert world.drift(data) == []
    undo(world.store, data.output, by="me")
    assert world.drift(stats) == []
    world.compute(data)
    assert world.drift(stats) == []
    digests = {"hello/data": world.look(data).record.to_dict()["manifest"]["digest"]}
    [drift], _ = drift_of(stats, world.graph, world.store, world.look(stats), digests)
    assert "computed again, and its content differs" in drift.sentence()


def test_a_reader_of_an_output_and_of_what_is_adopted_from_it_has_not_drifted(tmp_path: Path) -> None:
    old, new = toy("old"), toy("new", value=2)
    both = toy("both", note=[output_path_of(new), output_path_of(old)])  # type: ignore[arg-type]
    world = World(Store(str(tmp_path / "prefix" / "x")), [both])
    world.adopt(world.node("toy/new"), world.compute(world.node("toy/old")).path)
    world.compute(world.node("toy/both"))
    assert world.drift(world.node("toy/both")) == []


def test_what_reads_a_reader_records_the_adoption_too() -> None:
    adopted = Observed(path="a", record=Record.from_dict({"adopted_inputs": {"raw/x": {"from": "p", "why": "w"}}}))
    own = Observed(
        path="b", record=Record.from_dict({"result": {"adopted_inputs": {"raw/y[1]": {"from": "q", "why": "w"}}}})
    )
    found = adopted_inputs({"one": adopted, "two": own, "three": Observed(path="c")})["adopted_inputs"]
    assert list(found) == ["raw/x", "raw/y[1]"]
    assert adopted_inputs({"three": Observed(path="c")}) == {}


def test_the_plan_says_what_is_adopted_and_what_is_made_from_it(world: World, mine: str) -> None:
    data, stats = world.graph
    world.adopt(data, mine)
    reasons = [item.reason for item in prepare_plan(world.graph, world.store, list(world.graph))]
    assert reasons == [
        f"complete, adopted from {mine!r}: renamed",
        f"no output of this version yet; made from 'hello/data', adopted from {mine!r}: renamed",
    ]
    world.compute(stats)
    reasons = [item.reason for item in prepare_plan(world.graph, world.store, list(world.graph))]
    assert reasons[1] == f"complete, made from 'hello/data', adopted from {mine!r}"


def test_an_input_that_is_not_waited_for_is_read_where_it_was_adopted(tmp_path: Path, mine: str) -> None:
    from marin_assets.assets.body.request import build_task

    reader = toy("reader", reads=output_path_of(DATA).nonblocking())
    world = World(Store(str(tmp_path / "prefix")), [reader])
    world.adopt(world.node("hello/data"), mine)
    task = build_task(world.node("toy/reader"), world.graph, world.store, 1, {}, None)
    assert plain(task.config)["input_path"] == mine
    assert task.records == {mine: world.store.locate(world.node("hello/data").output)}
    assert list(task.facts["adopted_inputs"]) == ["hello/data"]


def test_a_snapshot_lists_an_adopted_partition_where_its_data_are(tmp_path: Path, mine: str) -> None:
    deliveries = part("deliveries", dynamic("deliveries"), tmp_path / "calls.txt")
    world = World(Store(str(tmp_path / "prefix")), [deliveries])
    [node] = world.graph
    world.adopt(node.at("a"), mine)
    out = str(tmp_path / "prefix" / "snapshot")
    found = take_snapshot(TakeSnapshotConfig(partitions_path=world.store.locate(node.output), output_path=out))
    assert found["adopted_inputs"] == {"parts/deliveries[a]": {"from": mine, "why": "renamed"}}
    assert [each.path for each in read_unchanged_snapshot(out).values()] == [mine]
    undo(world.store, node.at("a").output, by="me")
    with pytest.raises(SnapshotError, match="is gone since the snapshot"):
        read_unchanged_snapshot(out)


def test_a_report_shows_where_its_steps_are_adopted_from(world: World, mine: str, tmp_path: Path) -> None:
    data, stats = world.graph
    world.adopt(data, mine)
    reader = world.compute(stats)
    inputs = {"numbers": mine, "stats": reader.path}
    with records_at({mine: world.store.locate(data.output)}):
        records = read_records(inputs)
        assert parents_of(records["stats"], records) == ["numbers"]
        assert records["numbers"].version == data.version.hash
        write_report(ReportConfig(inputs=inputs, output_path=str(tmp_path), title="x", sample_questions=1))
    page = (tmp_path / "report.html").read_text()
    assert re.search(r"adopted from '&lt;(path|prefix)&gt;[^']*': renamed", page)  # no path of a machine
    assert "made from 'hello/data'" in page
    assert str(tmp_path) not in page


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    prefixes = {name: object_stores.gcs_prefix() for name in ("central", "east", "west")}
    use(write_catalogue(tmp_path, **prefixes), monkeypatch)
    found = fleet_from_env(None, prefixes["central"])
    assert found is not None
    return found


def reader_of(fleet: Fleet, path: str, **fields: Any) -> tuple[World, Node, Observed]:
    """A reader of data that are adopted from the path."""
    write_bytes(f"{path}/numbers.json", b"[1]")
    world = World(Store(fleet.home), [toy("reader", reads=toy("data"), **fields)])
    data, reader = world.graph
    world.adopt(data, path)
    return world, reader, world.look(data)


def test_a_fleet_copies_adopted_data_of_another_region_and_reads_those_of_its_own(fleet: Fleet) -> None:
    east, central = fleet.member("east").cluster.prefix, fleet.member("central").cluster.prefix
    world, reader, seen = reader_of(fleet, f"{east}/made/elsewhere", resources=tpu("v4-8"))
    inputs = {"toy/data": seen}
    needs = needs_of(reader, world.graph, world.store, inputs, {})
    there = choose_site(needs, fleet)
    config = resolved_config(reader, world.graph, world.store, there, inputs)
    assert (there.cluster, plain(config)["input_path"]) == ("central", f"{central}/made/elsewhere")
    assert copies_for(there, config) == ("mirror://made/elsewhere",)
    facts = describe_node(reader, world.store, config, inputs, None, there)
    assert facts["dependencies"] == [f"{fleet.home}/made/elsewhere"]
    here = choose_site(needs, fleet, at="east")
    assert plain(resolved_config(reader, world.graph, world.store, here, inputs))["input_path"] == seen.data_path


def test_data_that_no_region_of_the_fleet_has_are_read_in_their_own_region_or_the_step_is_refused(fleet: Fleet) -> None:
    near, far = object_stores.gcs_bucket("US-EAST5"), object_stores.gcs_bucket("EUROPE-WEST4")
    world, reader, seen = reader_of(fleet, f"gs://{near.name}/raw")
    site = choose_site(needs_of(reader, world.graph, world.store, {"toy/data": seen}, {}), fleet)
    assert site.cluster == "east"
    config = resolved_config(reader, world.graph, world.store, site, {"toy/data": seen})
    assert plain(config)["input_path"] == f"gs://{near.name}/raw"
    undo(world.store, world.node("toy/data").output, by="me")
    world, reader, seen = reader_of(fleet, f"gs://{far.name}/raw")
    with pytest.raises(NoSiteError, match="which is in europe-west4"):
        choose_site(needs_of(reader, world.graph, world.store, {"toy/data": seen}, {}), fleet)
    graph: Graph = world.graph
    observed = world.store.look(node.output for node in graph)
    [_, item] = with_sites(plan(graph, observed), graph, world.store, fleet)
    assert item.action is Action.BLOCKED
    near.forget()
    far.forget()


def test_a_mirrored_adopted_input_is_read_through_the_mirror_where_it_was_adopted(tmp_path: Path) -> None:
    reader = toy("reader", input_path=mirrored(output_path_of(DATA), budget_gb=1))
    world = World(Store(str(tmp_path / "prefix")), [reader])
    write_bytes(str(tmp_path / "prefix/kept/numbers.json"), b"[1]")
    data = world.node("hello/data")
    world.adopt(data, "kept")
    config = resolved_config(
        world.node("toy/reader"), world.graph, world.store, inputs={"hello/data": world.look(data)}
    )
    assert plain(config)["input_path"] == "mirror://kept"


def test_an_older_output_keeps_its_lineage(tmp_path: Path) -> None:
    renamed = Step(name="hello/renamed", fn=compute_stats, config=StatsConfig(input_path=output_path_of(DATA)))
    world = World(Store(str(tmp_path / "prefix")), [STATS, renamed])
    data, stats, new = (world.node(f"hello/{name}") for name in ("data", "stats", "renamed"))
    world.compute(data)
    old = world.compute(stats)
    world.adopt(new, old.path)
    record = world.look(new).record.to_dict()
    assert record["dependencies"] == [world.look(data).path]
    assert record["adopted"]["of"]["version"] == stats.version.as_dict()
    assert record["result"] == old.result
    assert verify_output(world.look(new).path).ok


@pytest.mark.parametrize("how", [{}, {"exact_up_to": 0}])
def test_after_an_undo_no_plan_says_that_a_folder_was_removed(world: World, mine: str, how: dict[str, int]) -> None:
    data, _ = world.graph
    world.adopt(data, mine)
    [mark] = CompleteOutputs(world.store.prefix).marks
    undo(world.store, data.output, by="me")
    [item] = prepare_plan(world.graph, world.store, [data], **how)
    assert (item.action, item.reason) == (Action.RUN, "no output of this version yet")
    write_mark(world.store.prefix, mark)  # as if the undo had been killed before its end
    [item] = prepare_plan(world.graph, world.store, [data], **how)
    assert (item.action, item.reason) == (Action.RUN, "it was complete, and was taken back since")
    shutil.rmtree(world.store.locate(data.output))
    [item] = prepare_plan(world.graph, world.store, [data], **how)
    assert (item.action, item.reason) == (Action.RUN, "it was complete, and its folder was removed")


@pytest.mark.parametrize("how", [{}, {"exact_up_to": 0}])
def test_an_adopted_output_whose_data_are_gone_blocks_what_reads_it(
    world: World, mine: str, how: dict[str, int]
) -> None:
    data, stats = world.graph
    world.adopt(data, mine)
    shutil.rmtree(mine)
    gone, reader = prepare_plan(world.graph, world.store, [data, stats], **how)
    assert (gone.action, reader.action) == (Action.BLOCKED, Action.BLOCKED)
    assert gone.damage == (
        f"'hello/data' is adopted from {mine!r}, and its data are gone from there. Restore them, or undo the adoption: "
        "marin adopt hello/data --undo"
    )
    [alone] = prepare_plan(world.graph, world.store, [stats], **how)
    assert (alone.action, alone.reason) == (Action.BLOCKED, f"needs 'hello/data': {gone.damage}")

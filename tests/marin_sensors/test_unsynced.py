"""The sensor on unsynced assets, ticked by hand on a real instance and a real store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.instance.types import CachingDynamicPartitionsLoader
from dagster._core.test_utils import create_run_for_test
from partition_steps import part
from running import definitions_of, run_steps
from sensor_words import what_is_there, what_was_new

from marin_assets.assets.factory import asset_key
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.partitions.products import product
from marin_assets.step.partitions.sets import Partitions, dynamic, static
from marin_assets.step.partitions.windows import daily
from marin_assets.step.step import Step
from marin_assets.step.values import versioned
from marin_resources.storage.output.store import Store
from marin_sensors.runs.in_progress import SENSOR
from marin_sensors.unsynced import CHEAP, unsynced

KEYS = ("a", "b", "c")
NOTHING = "Every asset that was materialized has the version of its definition."


class Deployment:
    """Steps in a code location, what was materialized, and the sensor."""

    def __init__(self, instance: dg.DagsterInstance, prefix: Path) -> None:
        self.instance, self.store = instance, Store(str(prefix))
        self.sensor = unsynced()
        self.cursor: str | None = None

    def define(self, *steps: Step) -> Graph:
        self.graph, self.definitions = build_graph(steps), definitions_of(steps)
        return self.graph

    def materialize(self, *nodes: Node, shown: bool = True) -> None:
        """Complete the outputs; `shown`: as a run of this deployment, which Dagster has in its history."""
        for node in nodes:
            claim = self.store.claim(node.output, attempt=1, resumable=False, run_id=None)
            self.store.publish(claim, {"version": node.version.as_dict(), "name": node.name}, {})
            tags = {"dagster/code_version": node.version.hash, "dagster/data_version": node.version.hash}
            if shown:
                event = dg.AssetMaterialization(asset_key(node), partition=node.key, tags=tags)
                self.instance.report_runless_asset_event(event)

    def fail(self, node: Node, *attempts: int) -> None:
        for attempt in attempts:
            claim = self.store.claim(node.output, attempt=attempt, resumable=False, run_id=None)
            self.store.fail(claim, {"version": node.version.as_dict(), "name": node.name}, "broken", "")

    def tick(self) -> list[tuple[str, str | None]]:
        """The assets and partitions that are requested."""
        context = dg.build_sensor_context(instance=self.instance, cursor=self.cursor, definitions=self.definitions)
        result = self.sensor(context)
        assert isinstance(result, dg.SensorResult), result
        said = str(result.skip_reason.skip_message) if result.skip_reason else ""
        self.said, self.cursor = what_is_there(said), result.cursor
        self.last = what_was_new(said) if said else ""
        requests = result.run_requests or ()
        assert all(request.tags[SENSOR] == "unsynced" for request in requests)
        return [
            (key.to_user_string(), request.partition_key)
            for request in requests
            for key in request.asset_selection or ()
        ]


@pytest.fixture
def deployment(instance: dg.DagsterInstance, prefix: Path) -> Deployment:
    return Deployment(instance, prefix)


@pytest.fixture
def chain(tmp_path: Path):
    """Raw, and tokens that read it, at a value of raw."""

    def chain(value: int, *, cheap: Sequence[str] = ()) -> list[Step]:
        tags = {name: {CHEAP: "true"} if name in cheap else {} for name in ("raw", "tokens")}
        raw = part("raw", None, tmp_path / "calls", value=versioned(value), tags=tags["raw"])
        return [raw, part("tokens", None, tmp_path / "calls", reads=raw, tags=tags["tokens"])]

    return chain


def test_what_was_never_materialized_is_not_unsynced(deployment: Deployment, chain) -> None:
    deployment.define(*chain(1))
    assert deployment.tick() == []
    assert deployment.said == NOTHING


def test_a_change_is_reported_with_all_that_it_makes_unsynced_until_it_is_made(deployment: Deployment, chain) -> None:
    deployment.materialize(*deployment.define(*chain(1)))
    assert deployment.tick() == []
    assert deployment.said == NOTHING
    assert deployment.last == "Nothing new so far."
    raw, tokens = deployment.define(*chain(2))
    for _ in range(2):  # each tick looks anew
        assert deployment.tick() == []
        assert deployment.said == (
            f"2 unsynced: parts/raw (now {raw.version.hash}), parts/tokens (now {tokens.version.hash})."
        )
    deployment.materialize(raw)
    assert deployment.tick() == []
    assert deployment.said == f"1 unsynced: parts/tokens (now {tokens.version.hash})."
    deployment.materialize(tokens, shown=False)
    assert deployment.tick() == []
    assert deployment.said == NOTHING, "another deployment has completed it in this store"
    assert deployment.last.startswith(f"The last new one: parts/tokens (now {tokens.version.hash}), 20")


def test_what_is_cheap_is_requested_inputs_first(deployment: Deployment, chain) -> None:
    deployment.materialize(*deployment.define(*chain(1)))
    raw, tokens = deployment.define(*chain(2, cheap=["raw", "tokens"]))
    assert deployment.tick() == [("parts/raw", None)]
    run = create_run_for_test(deployment.instance, status=dg.DagsterRunStatus.STARTED, tags={SENSOR: "unsynced"})
    assert deployment.tick() == []
    assert deployment.said.endswith("Nothing is requested: its last runs are in progress.")
    deployment.materialize(raw)
    deployment.instance.report_run_failed(run, "it ended")
    assert deployment.tick() == [("parts/tokens", None)]
    deployment.fail(tokens, 1, 2)
    assert deployment.tick() == [("parts/tokens", None)]
    deployment.fail(tokens, 3)
    assert deployment.tick() == [], "it fails again and again"


def test_what_is_not_cheap_holds_back_what_reads_it(deployment: Deployment, chain) -> None:
    deployment.materialize(*deployment.define(*chain(1)))
    deployment.define(*chain(2, cheap=["tokens"]))
    assert deployment.tick() == []


def test_partitions_are_unsynced_one_by_one(deployment: Deployment, tmp_path: Path) -> None:
    def step(value: int) -> Step:
        tags = {CHEAP: "true"}
        return part("raw", static(*KEYS), tmp_path / "calls", value=versioned(value), tags=tags)

    [old] = deployment.define(step(1))
    other = part("deliveries", dynamic("deliveries"), tmp_path / "calls")
    beside = dg.Definitions.merge(definitions_of([step(1), other]), dg.Definitions(sensors=[deployment.sensor]))
    dg.Definitions.validate_loadable(beside)  # also beside sets of partitions that no job has in common
    deployment.materialize(old.at("a"), old.at("b"))
    assert deployment.tick() == []
    [new] = deployment.define(step(2))
    deployment.materialize(new.at("b"))
    assert deployment.tick() == [("parts/raw", "a")], "b is new, and c was never made"
    deployment.materialize(new.at("a"))
    assert deployment.tick() == []
    assert deployment.said == NOTHING


@pytest.mark.parametrize(
    ("before", "now", "keys", "left"),
    [
        (dynamic("deliveries"), dynamic("deliveries"), ("a", "b"), "b"),
        (static("a", "b"), static("b"), ("a", "b"), "b"),
        (daily("2026-01-01"), daily("2026-01-02"), ("2026-01-01", "2026-01-02"), "2026-01-02"),
        (
            product(delivery=dynamic("deliveries"), lang=static("en")),
            product(delivery=dynamic("deliveries"), lang=static("en")),
            ("a|en", "b|en"),
            "b|en",
        ),
    ],
)
def test_a_key_that_the_set_no_longer_has_holds_up_no_other(
    deployment: Deployment, tmp_path: Path, before: Partitions, now: Partitions, keys: tuple[str, ...], left: str
) -> None:
    def step(value: int, partitions: Partitions) -> Step:
        return part("raw", partitions, tmp_path / "calls", value=versioned(value), tags={CHEAP: "true"})

    deployment.instance.add_dynamic_partitions("deliveries", ["a", "b"])
    [old] = deployment.define(step(1, before))
    deployment.materialize(*map(old.at, keys))
    deployment.instance.delete_dynamic_partition("deliveries", "a")
    deployment.define(step(2, now))
    context = dg.build_sensor_context(instance=deployment.instance, definitions=deployment.definitions)
    # As in the code server, which looks up each key in the stored instance.
    context.__dict__["caching_dynamic_partitions_loader"] = CachingDynamicPartitionsLoader(deployment.instance)
    found = deployment.sensor.evaluate_tick(context)
    assert [request.partition_key for request in found.run_requests or ()] == [left]
    deployment.instance.delete_dynamic_partition("deliveries", "b")
    if "dynamic" in repr(now):
        assert deployment.tick() == []
        assert deployment.said == NOTHING


@pytest.mark.long
def test_the_versions_of_real_runs_are_compared(deployment: Deployment, tmp_path: Path) -> None:
    def steps(value: int) -> list[Step]:
        raw = part("raw", None, tmp_path / "calls", value=versioned(value))
        return [raw, part("of_each", static(*KEYS), tmp_path / "calls", reads=raw)]

    def run_all(*of: Step) -> None:
        assert run_steps(of[:1], deployment.instance).success
        context = dg.build_sensor_context(instance=deployment.instance, definitions=deployment.definitions)
        assert context.repository_def is not None
        job = deployment.definitions.resolve_job_def("experiment")
        assert job.execute_in_process(
            instance=deployment.instance, partition_key="b", asset_selection=[dg.AssetKey(["parts", "of_each"])]
        ).success

    deployment.define(*steps(1))
    run_all(*steps(1))
    assert deployment.tick() == []
    assert deployment.said == NOTHING
    raw, of_each = deployment.define(*steps(2))
    assert deployment.tick() == []
    assert deployment.said == (
        f"2 unsynced: parts/raw (now {raw.version.hash}), parts/of_each (now {of_each.version.hash}, 1 partition)."
    )

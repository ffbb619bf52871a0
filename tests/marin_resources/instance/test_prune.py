"""Old runs that only reused are deleted, and no asset's page says less than before: on SQLite and on Postgres."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.execution.backfill import BulkActionStatus
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.tags import BACKFILL_ID_TAG
from dagster_homes import laptop_home, new_home
from kept_instance import dropped, fill
from partition_steps import part
from postgres_server import Postgres, postgres
from running import ROOT
from toy_steps import toy

from marin_assets import static
from marin_assets.assets.assemble import definitions_of
from marin_assets.assets.factory import asset_key
from marin_assets.assets.runs.run import run_graph
from marin_assets.cli.main import main
from marin_assets.step.graph import Graph, build_graph
from marin_resources.dagster_fixes.databases import open_instance
from marin_resources.instance.prune import Reuses

PROFILE = ROOT / "deploy/vm/dagster.yaml"
KEYS = ["1", "2", "3"]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture(params=["SQLite", pytest.param("Postgres", marks=pytest.mark.long)])
def home(
    request: pytest.FixtureRequest, shared_ray: None, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    home = laptop_home(tmp_path / "dagster")
    if request.param == "Postgres":
        (home / "dagster.yaml").write_text(PROFILE.read_text())
        url = request.getfixturevalue("server").create(f"db_{os.urandom(4).hex()}")
        monkeypatch.setenv("MARIN_POSTGRES_URL", url)
        monkeypatch.setenv("MARIN_PREFIX", str(prefix))
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return home


def chain(value: int = 1) -> Graph:
    a = toy("a", value=value)
    return build_graph([a, toy("b", reads=a)])


def run(graph: Graph, names: Sequence[str], keys: Sequence[str] = ()) -> str:
    """The id of a run of these steps."""
    ended = run_graph("toy", graph, [node for node in graph if node.name in names], keys=keys)
    assert not ended.failures
    return ended.run_id


def prune(*options: str) -> int:
    return main(["instance", "prune", *options])


def left() -> set[str]:
    with open_instance() as instance:
        return {run.run_id for run in instance.get_runs()}


def page(graph: Graph) -> dict[str, Any]:
    """What the pages of the assets show first."""
    shown: dict[str, Any] = {}
    with open_instance() as instance:
        assets = definitions_of(graph, {}).resolve_asset_graph()
        stale = CachingStaleStatusResolver(instance, assets, LoadingContextForTest(instance))
        for node in graph:
            key = asset_key(node)
            event = instance.get_latest_materialization_event(key)
            partitioned = node.step.partitions is not None
            checks = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(assets.asset_check_keys))
            shown[node.name] = (
                event and event.to_json(),
                instance.get_materialized_partitions(key) if partitioned else stale.get_status(key).value,
                sorted((str(check), found.run_id, found.status) for check, found in checks.items()),
            )
    return shown


def test_what_an_asset_shows_and_what_was_computed_remain(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, both = chain(), ["toy/a", "toy/b"]
    computed = run(graph, both)
    first, second = run(graph, both), run(graph, ["toy/a"])
    latest_of_b, latest_of_a = run(graph, both), run(graph, ["toy/a"])
    before = page(graph)

    assert prune() == 0
    assert "deleted 0 runs that only reused, of 0 at" in capsys.readouterr().out
    assert prune("--days", "0", "--dry-run") == 0
    assert "would delete 2 runs that only reused, of 5 at" in capsys.readouterr().out
    assert left() == {computed, first, second, latest_of_b, latest_of_a}

    assert prune("--days", "0") == 0
    assert "deleted 2 runs that only reused, of 5 at" in capsys.readouterr().out
    assert left() == {computed, latest_of_b, latest_of_a}
    assert page(graph) == before
    with open_instance() as instance:
        for run_id in (first, second):
            assert not instance.all_logs(run_id)
            assert not list(home.rglob(f"*{run_id}*/**/*.err"))
    assert prune("--days", "0") == 0
    assert "deleted 0 runs that only reused, of 3 at" in capsys.readouterr().out


@pytest.mark.long
def test_a_run_remains_for_one_partition_that_shows_it(home: Path, tmp_path: Path) -> None:
    graph = build_graph([part("p", static(*KEYS), tmp_path / "calls.txt")])
    computed, all_of_them = run(graph, ["parts/p"], KEYS), run(graph, ["parts/p"], KEYS)
    two = run(graph, ["parts/p"], KEYS[:2])
    before = page(graph)
    assert prune("--days", "0") == 0
    assert left() == {computed, all_of_them, two}
    again = run(graph, ["parts/p"], KEYS)
    assert prune("--days", "0") == 0
    assert left() == {computed, again}
    assert page(graph)["parts/p"][1] == before["parts/p"][1] == set(KEYS)


@pytest.mark.long
def test_a_deletion_that_was_interrupted_is_gone_on_with(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = chain()
    computed, old, latest = (run(graph, ["toy/a", "toy/b"]) for _ in range(3))

    def die(self: dg.DagsterInstance, run_id: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(dg.DagsterInstance, "delete_run", die)
        with open_instance() as instance, pytest.raises(KeyboardInterrupt):
            Reuses(instance).delete(old)
    assert left() == {computed, old, latest}
    assert prune("--days", "0") == 0
    assert left() == {computed, latest}


@pytest.mark.long
def test_a_backfill_under_way_counts_its_runs(home: Path) -> None:
    graph = chain()
    _, old, _ = (run(graph, ["toy/a", "toy/b"]) for _ in range(3))
    with open_instance() as instance:
        fill(instance, ["x"])
        backfill = instance.get_backfills()[0]
        instance.add_run_tags(old, {BACKFILL_ID_TAG: backfill.backfill_id})
        for status, deleted in ((BulkActionStatus.REQUESTED, False), (BulkActionStatus.COMPLETED_SUCCESS, True)):
            instance.update_backfill(backfill.with_status(status))
            assert Reuses(instance).only_reused(old) is deleted


def test_runs_of_others_remain(home: Path) -> None:
    with open_instance() as instance:
        fill(instance, ["x"])
        assert dg.materialize([dropped], instance=instance, partition_key="x").success
    runs = left()
    assert prune("--days", "0") == 0
    assert left() == runs


@pytest.mark.parametrize("days", ["-1", "soon", "nan", "inf"])
def test_wrong_days_are_one_sentence(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert prune(f"--days={days}") == 2
    assert f"got {days!r}, expected a number of days, such as 30" in capsys.readouterr().err


@pytest.mark.parametrize("damaged", ["dagster.yaml", "history/runs.db"])
def test_an_instance_that_cannot_be_read_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], damaged: str
) -> None:
    home = new_home(tmp_path / "dagster")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    (home / damaged).write_text("storage: [postgres\n" * 100)
    assert prune() == 2
    assert f"The instance at {str(home)!r} cannot be read (" in capsys.readouterr().err

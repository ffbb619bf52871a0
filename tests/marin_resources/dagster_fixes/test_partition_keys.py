"""A key that cannot be a partition is refused where it is added, whoever adds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster_homes import deployed_instance, instance_at, laptop_home
from postgres_server import postgres

from marin_resources.types.partition_key import PartitionKeyError


@pytest.fixture(params=["SQLite", pytest.param("Postgres", marks=pytest.mark.long)])
def instance(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    home = tmp_path / "home"
    if request.param == "Postgres":
        with postgres() as server, deployed_instance(home, server.create("keys"), monkeypatch) as instance:
            yield instance
    else:
        with instance_at(laptop_home(home), monkeypatch) as instance:
            yield instance


def test_a_key_beside_another_that_differs_in_case_alone_is_refused(instance: dg.DagsterInstance) -> None:
    instance.add_dynamic_partitions("deliveries", ["case", "other"])
    for keys in (["new", "Case"], ["New", "new"], [".."], [""], ["x" * 300]):
        with pytest.raises(PartitionKeyError):
            instance.add_dynamic_partitions("deliveries", keys)
    assert instance.get_dynamic_partitions("deliveries") == ["case", "other"]
    instance.add_dynamic_partitions("deliveries", ["case", "more"])
    instance.add_dynamic_partitions("elsewhere", ["Case"])
    assert instance.get_dynamic_partitions("deliveries") == ["case", "other", "more"]


def test_a_set_that_has_both_already_works(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as as_it_was:
        as_it_was.setattr("marin_resources.dagster_fixes.partition_keys.FoldersOfKeys.require_free", lambda *_: None)
        instance.add_dynamic_partitions("deliveries", ["case", "Case", ".."])
    instance.add_dynamic_partitions("deliveries", ["case", "Case", "more"])
    assert instance.get_dynamic_partitions("deliveries") == ["case", "Case", "..", "more"]
    with pytest.raises(
        PartitionKeyError, match="'CASE' is new in the set 'deliveries', and 'case' is one folder with it"
    ):
        instance.add_dynamic_partitions("deliveries", ["CASE"])

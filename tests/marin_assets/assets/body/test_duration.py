"""A step that took long the last time is a job of its own on a cluster."""

from __future__ import annotations

import dagster as dg
import pytest
from toy_steps import toy

from marin_assets.assets.body.materialize import was_long_running
from marin_assets.assets.body.request import build_task
from marin_assets.step.graph import build_graph
from marin_resources.ray_tpu.cluster.handle import is_small
from marin_resources.storage.output.store import Store

KEY = dg.AssetKey(["toy", "a"])


@pytest.mark.parametrize(
    ("recorded", "is_long"),
    [([], False), ([{"compute_s": 700.5}], True), ([{"compute_s": 700.5}, {"compute_s": 2.0}], False), ([{}], False)],
)
def test_the_last_recorded_time_counts(
    instance: dg.DagsterInstance, recorded: list[dict[str, float]], is_long: bool
) -> None:
    for metadata in recorded:
        instance.report_runless_asset_event(dg.AssetMaterialization(KEY, metadata=metadata))
    assert was_long_running(instance, KEY, long_s=600.0) is is_long


@pytest.mark.parametrize(
    ("own_job", "long", "small"), [(None, False, True), (None, True, False), (True, False, False), (False, True, True)]
)
def test_the_steps_own_choice_comes_first(own_job: bool | None, long: bool, small: bool) -> None:
    step = toy("a", own_job=own_job)
    graph = build_graph([step])
    assert is_small(build_task(graph[step], graph, Store("/nowhere"), 1, {}, None, lambda: long)) is small

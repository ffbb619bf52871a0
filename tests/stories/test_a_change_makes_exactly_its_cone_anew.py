"""A change of one versioned field: exactly what is downstream of it is unsynced, and exactly that runs."""

from pathlib import Path

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest
from running import definitions_of, reused, run_steps
from toy_steps import calls, toy

from marin_assets import Step


def diamond(left_value: int, note: str = "") -> list[Step]:
    """top -> left, right -> bottom; left -> leaf."""
    top = toy("top", note=note)
    left, right = toy("left", reads=top, value=left_value), toy("right", reads=top)
    bottom = toy("bottom", reads=left, gate=right / "value.txt")
    return [bottom, toy("leaf", reads=left), toy("beside", reads=right)]


def unsynced(steps: list[Step], instance: dg.DagsterInstance) -> set[str]:
    """The assets that the UI calls unsynced or missing."""
    graph = definitions_of(steps).resolve_asset_graph()
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    keys = graph.materializable_asset_keys
    return {k.path[-1] for k in keys if resolver.get_status(k) is not StaleStatus.FRESH}


def test_exactly_the_cone_is_unsynced_and_runs_and_going_back_costs_nothing(
    instance: dg.DagsterInstance, prefix: Path, shared_ray: None
) -> None:
    before, after = diamond(1), diamond(2)
    cone = {"left", "bottom", "leaf"}
    assert run_steps(before, instance).success
    assert unsynced(before, instance) == set()
    assert unsynced(after, instance) == cone

    done = len(calls(prefix))
    result = run_steps(after, instance)
    assert {key.removeprefix("toy/") for key, was in reused(result).items() if not was} == cone
    done += len(cone)
    assert len(calls(prefix)) == done
    assert unsynced(after, instance) == set()

    assert unsynced(before, instance) == cone
    result = run_steps(before, instance)
    assert all(reused(result).values()), "going back costs nothing"
    assert len(calls(prefix)) == done
    assert unsynced(before, instance) == set()
    assert unsynced(diamond(1, note="other words"), instance) == set(), "an unversioned change is no change"

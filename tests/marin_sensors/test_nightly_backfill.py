"""The schedule of what is missing, evaluated on a real instance and a real store."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.partitions.context import partition_loading_context
from partition_steps import part
from running import definitions_of

from marin_assets import daily, dynamic, product, static
from marin_assets.assets.factory import definition_of
from marin_assets.step.graph import Graph, build_graph
from marin_assets.step.step import Step
from marin_resources.hardware.resources import gpu
from marin_resources.storage.output.store import Store
from marin_sensors.nightly_backfill import nightly_backfill

KEYS = ("a", "b", "c", "d", "e")
BOTH = ["parts/raw", "parts/tokens"]


@dataclass(frozen=True)
class Evaluated:
    runs: list[tuple[str, str, list[str]]]
    """First key, last key and assets of each run that is requested."""
    run_keys: list[str | None]
    said: str | None


Evaluate = Callable[..., Evaluated]


@pytest.fixture
def steps(tmp_path: Path) -> list[Step]:
    calls = tmp_path / "calls.txt"
    raw = part("raw", static(*KEYS), calls)
    return [raw, part("tokens", static(*KEYS), calls, reads=raw)]


@pytest.fixture
def graph(steps: list[Step]) -> Graph:
    return build_graph(steps)


@pytest.fixture
def store(prefix: Path) -> Store:
    return Store(str(prefix))


@pytest.fixture
def evaluate(steps: list[Step], instance: dg.DagsterInstance, prefix: Path) -> Evaluate:
    """Evaluates a schedule of these assets."""

    def evaluate(*assets: str, definitions: dg.Definitions | None = None, **options: Any) -> Evaluated:
        nightly = nightly_backfill("nightly", assets or BOTH, "0 2 * * *", **options)
        context = dg.build_schedule_context(
            instance=instance,
            scheduled_execution_time=datetime.datetime(2026, 1, 5, 2, tzinfo=datetime.UTC),
            repository_def=(definitions or definitions_of(steps)).get_repository_def(),
        )
        evaluated = nightly.evaluate_tick(context)
        requests = list(evaluated.run_requests or ())
        runs = [
            (
                request.tags["dagster/asset_partition_range_start"],
                request.tags["dagster/asset_partition_range_end"],
                [key.to_user_string() for key in request.asset_selection or ()],
            )
            for request in requests
        ]
        return Evaluated(runs, [request.run_key for request in requests], evaluated.skip_message)

    return evaluate


def end(graph: Graph, store: Store, name: str, *keys: str, failures: int = 0) -> None:
    """Complete the partitions of a step, or let them fail so many times."""
    [node] = [node for node in graph if node.name == name]
    for key in keys:
        for attempt in range(1, max(failures, 1) + 1):
            claim = store.claim(node.at(key).output, attempt=attempt, resumable=False, run_id=None)
            facts = {"version": node.version.as_dict(), "name": name}
            store.fail(claim, facts, "broken", "") if failures else store.publish(claim, facts, {})


def test_exactly_what_is_missing_is_requested_the_newest_first(evaluate: Evaluate, graph: Graph, store: Store) -> None:
    assert evaluate().runs == [("a", "e", BOTH)]
    end(graph, store, "parts/raw", "b", "c")
    end(graph, store, "parts/tokens", "c")
    assert evaluate().runs == [("d", "e", BOTH), ("b", "b", ["parts/tokens"]), ("a", "a", BOTH)]
    end(graph, store, "parts/raw", "a", "d", "e")
    end(graph, store, "parts/tokens", "a", "b", "d", "e")
    assert evaluate() == Evaluated([], [], "All partitions are complete or being computed.")


def test_the_cap_is_of_the_newest(evaluate: Evaluate) -> None:
    assert evaluate(cap=2).runs == [("d", "e", BOTH)]


def test_a_pool_has_a_cap_of_its_own(evaluate: Evaluate, graph: Graph, store: Store, tmp_path: Path) -> None:
    calls = tmp_path / "calls.txt"
    raw = part("raw", static(*KEYS), calls)
    decided = dataclasses.replace(part("judged", static(*KEYS), calls, reads=raw), resources=gpu("H100"))
    both = definitions_of([raw, decided])
    end(graph, store, "parts/raw", "c", "d")
    names = ["parts/raw", "parts/judged"]
    assert evaluate(*names, definitions=both, cap_per_pool={"gpu_H100": 2}).runs == [
        ("e", "e", names),
        ("d", "d", ["parts/judged"]),
    ]
    end(build_graph([raw, decided]), store, "parts/judged", "d")
    assert evaluate(*names, definitions=both, cap=3, cap_per_pool={"gpu_H100": 2}).runs == [
        ("e", "e", names),
        ("c", "c", ["parts/judged"]),
    ]
    none = evaluate("parts/judged", definitions=both, cap_per_pool={"gpu_H100": 0}).said
    assert none == "4 partitions are not complete, and the caps let none of them be made."
    assert evaluate(*names, definitions=both, cap_per_pool={"gpu_h100": 2}).said == (
        "The schedule has a cap for the pool 'gpu_h100', expected one of its assets' pools: ['gpu_H100']. Correct it."
    )


def test_what_fails_again_and_again_is_left_out(evaluate: Evaluate, graph: Graph, store: Store) -> None:
    end(graph, store, "parts/raw", "e", failures=3)
    end(graph, store, "parts/raw", "d", failures=2)
    assert evaluate().runs == [("a", "d", BOTH)]
    assert evaluate(max_failures=2).runs == [("a", "c", BOTH)]
    assert evaluate(max_failures=4).runs == [("a", "e", BOTH)]


def test_what_is_being_computed_is_left_out(evaluate: Evaluate, graph: Graph, store: Store) -> None:
    [raw] = [node for node in graph if node.name == "parts/raw"]
    claim = store.claim(raw.at("e").output, attempt=1, resumable=False, run_id=None)
    assert evaluate("parts/raw").runs == [("a", "d", ["parts/raw"])]
    claim.lease.release()


def test_a_run_has_at_most_the_partitions_that_the_step_allows(evaluate: Evaluate, tmp_path: Path) -> None:
    few = part("raw", static(*KEYS), tmp_path / "calls.txt", per_run=2)
    found = evaluate("parts/raw", definitions=definitions_of([few]))
    assert found.runs == [("d", "e", ["parts/raw"]), ("b", "c", ["parts/raw"]), ("a", "a", ["parts/raw"])]


def test_nothing_is_added_while_the_last_runs_are_in_progress(evaluate: Evaluate, instance: dg.DagsterInstance) -> None:
    instance.add_run(dg.DagsterRun("j", status=dg.DagsterRunStatus.STARTED, tags={"marin/schedule": "nightly"}))
    assert evaluate() == Evaluated([], [], "1 runs of the last time are in progress, so nothing is added.")


def test_windows_and_sets_that_grow_have_the_keys_of_the_moment(
    evaluate: Evaluate, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    days = part("days", daily("2026-01-01"), tmp_path / "calls.txt")
    assert evaluate("parts/days", definitions=definitions_of([days]), cap=3).runs == [
        ("2026-01-02", "2026-01-04", ["parts/days"])
    ]
    deliveries = part("deliveries", dynamic("deliveries"), tmp_path / "calls.txt")
    instance.add_dynamic_partitions("deliveries", ["y", "x"])
    assert evaluate("parts/deliveries", definitions=definitions_of([deliveries])).runs == [
        ("y", "x", ["parts/deliveries"])
    ]


def test_the_same_night_has_the_same_run_keys(evaluate: Evaluate) -> None:
    assert evaluate().run_keys == evaluate().run_keys == ["nightly 2026-01-05 02:00: a...e"]


def test_an_asset_that_is_not_there_is_one_sentence(evaluate: Evaluate) -> None:
    assert evaluate("parts/rw").said == "Asset 'parts/rw' is not in the code location. Correct the schedule."


def test_assets_of_different_sets_are_one_sentence(evaluate: Evaluate, steps: list[Step], tmp_path: Path) -> None:
    other = part("other", static("x"), tmp_path / "calls.txt")
    found = evaluate("parts/raw", "parts/other", definitions=definitions_of([*steps, other]))
    assert found.runs == []
    assert "'parts/raw' and 'parts/other' have different partitions." in str(found.said)


def made_by(runs: list[tuple[str, str, list[str]]], partitions: dg.PartitionsDefinition, now: datetime.datetime):
    """The keys that Dagster makes of each range that is requested."""
    with partition_loading_context(now):
        return [
            [str(key) for key in partitions.get_partition_keys_in_range(dg.PartitionKeyRange(first, last))]
            for first, last, _ in runs
        ]


@pytest.mark.parametrize("names", [("day", "lang"), ("zday", "lang")])
def test_a_product_is_requested_in_ranges_that_dagster_makes_as_they_are(
    evaluate: Evaluate, store: Store, tmp_path: Path, names: tuple[str, str]
) -> None:
    sets = product(**{names[0]: daily("2026-01-01"), names[1]: static("en", "de", "fr")})
    pages, now = part("pages", sets, tmp_path / "calls.txt"), datetime.datetime(2026, 1, 5, 2, tzinfo=datetime.UTC)

    def night(**options: Any) -> list[list[str]]:
        found = evaluate("parts/pages", definitions=definitions_of([pages]), **options)
        made = made_by(found.runs, definition_of(sets), now)
        return [["-".join(sorted(key.replace("2026-01-0", "").split("|"))) for key in some] for some in made]

    everything = {f"{day}-{lang}" for day in (1, 2, 3, 4) for lang in ("en", "de", "fr")}
    made = [key for some in night() for key in some]
    assert (set(made), len(made)) == (everything, 12)
    assert {key for some in night(cap=3) for key in some} == {"4-en", "4-de", "4-fr"}, "the newest day first"
    graph = build_graph([pages])
    there = ["2026-01-03|de", "2026-01-04|en"]
    keys = [key if names[0] == "day" else "|".join(reversed(key.split("|"))) for key in there]
    end(graph, store, "parts/pages", *keys)
    made = [key for some in night() for key in some]
    assert (set(made), len(made)) == (everything - {"3-de", "4-en"}, 10)


def test_a_product_with_a_set_that_grows_is_made(
    evaluate: Evaluate, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    sets = product(delivery=dynamic("deliveries"), lang=static("en", "de"))
    instance.add_dynamic_partitions("deliveries", ["y", "x"])
    pages = part("pages", sets, tmp_path / "calls.txt")
    found = evaluate("parts/pages", definitions=definitions_of([pages]))
    assert found.runs == [("x|en", "x|de", ["parts/pages"]), ("y|en", "y|de", ["parts/pages"])]

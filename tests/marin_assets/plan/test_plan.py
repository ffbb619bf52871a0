from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from marin_assets.plan.plan import Action, plan, refuse
from marin_assets.step.graph import Graph, build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import THIS_OUTPUT_PATH
from marin_resources.drift.drift import Drift, Kind
from marin_resources.ray_tpu.requirements import MissingRequirement
from marin_resources.types.output import Holder, Match, Observed, Output, Status
from marin_resources.types.record import Record

HOLDER = Holder(owner="o", host="tpu-7", pid=12, run_id="abc", since="2026-01-01T00:00:00+00:00")


@dataclass(frozen=True)
class Config:
    x: Any = None
    output_path: str = THIS_OUTPUT_PATH


def do_nothing(config: Any) -> None:
    """Never run."""


@pytest.fixture
def graph() -> Graph:
    a = Step(name="a", fn=do_nothing, config=Config())
    b = Step(name="b", fn=do_nothing, config=Config(a), resumable=True)
    return build_graph([Step(name="c", fn=do_nothing, config=Config(b))])


def observe(graph: Graph, **seen: dict[str, Any]) -> dict[Output, Observed]:
    return {node.output: Observed(path=f"/p/{node.name}", **seen.get(node.name, {})) for node in graph}


def actions(graph: Graph, select: str | None = None, **seen: dict[str, Any]) -> dict[str, tuple[Action, str]]:
    selected = None if select is None else [node for node in graph if node.name in select]
    return {p.node.name: (p.action, p.reason) for p in plan(graph, observe(graph, **seen), selected)}


DONE = {"status": Status.SUCCESS}


def test_what_is_not_there_runs_and_what_reads_it_too(graph: Graph) -> None:
    assert actions(graph) == {
        "a": (Action.RUN, "no output of this version yet"),
        "b": (Action.RUN, "new, as 'a' is"),
        "c": (Action.RUN, "new, as 'b' is"),
    }


def test_what_is_complete_is_reused(graph: Graph) -> None:
    planned = actions(graph, a=DONE, b=DONE, c=DONE)
    assert set(planned.values()) == {(Action.REUSE, "complete")}


def test_a_complete_step_is_reused_though_its_input_is_gone(graph: Graph) -> None:
    assert actions(graph, b=DONE)["b"] == (Action.REUSE, "complete")


def test_a_record_without_a_version_is_reused_and_called_unverified(graph: Graph) -> None:
    action, reason = actions(graph, a={**DONE, "match": Match.UNVERIFIED})["a"]
    assert (action, "unverified" in reason) == (Action.REUSE, True)


def test_another_versions_output_blocks_the_step_and_what_reads_it(graph: Graph) -> None:
    planned = actions(graph, a={**DONE, "match": Match.OTHER})
    assert planned["a"] == (Action.BLOCKED, "another version's output is stored at this path")
    assert planned["b"] == (Action.BLOCKED, "needs 'a', which is blocked")
    assert planned["c"] == (Action.BLOCKED, "needs 'b', which is blocked")


def test_what_someone_works_on_is_waited_for_and_the_holder_is_named(graph: Graph) -> None:
    action, reason = actions(graph, a={"status": Status.RUNNING, "holder": HOLDER})["a"]
    assert action is Action.WAIT
    assert reason == f"being computed by {HOLDER.describe()}"
    assert "process 12 on tpu-7, Dagster run abc" in reason


def test_an_input_outside_the_selection_must_be_complete(graph: Graph) -> None:
    assert actions(graph, "b")["b"] == (Action.BLOCKED, "needs 'a', which is not complete and not selected")
    assert actions(graph, "b", a=DONE)["b"][0] is Action.RUN


def test_a_failed_attempt_runs_again_and_says_why_it_failed(graph: Graph) -> None:
    assert actions(graph, a={"status": Status.FAILED, "record": Record.from_dict({"error": "ValueError: x"})})["a"] == (
        Action.RUN,
        "its last attempt failed: ValueError: x",
    )
    assert "was stopped" in actions(graph, a={"status": Status.FAILED})["a"][1]


def test_a_dead_attempt_runs_again_and_a_resumable_one_goes_on(graph: Graph) -> None:
    dead = {"status": Status.RUNNING}
    planned = actions(graph, a=dead, b=dead)
    assert planned["a"] == (Action.RUN, "its last attempt died")
    assert planned["b"] == (Action.RUN, "its last attempt died, it resumes from the files of that attempt")


def test_drift_is_reported_of_what_is_reused_and_computed_for_nothing_else(graph: Graph) -> None:
    drift = Drift(kind=Kind.CONFIG, what="lr", was=1, now=2)
    planned = plan(graph, observe(graph, a=DONE), None, lambda node: (drift,))
    assert [(p.reason, p.drift) for p in planned if p.drift] == [
        ("complete; since it was computed, the unversioned field 'lr' (1, now 2) changed", (drift,))
    ]


def test_a_step_that_lacks_something_is_blocked_and_so_is_what_needs_it(graph: Graph) -> None:
    requirement = MissingRequirement(verb="requires", what="the variable 'KEY', which is not set", remedy="Export it.")
    planned = refuse(plan(graph, observe(graph)), {"b": (requirement,)})
    assert [(item.action, item.missing_requirements) for item in planned] == [
        (Action.RUN, False),
        (Action.BLOCKED, True),
        (Action.BLOCKED, False),
    ]
    assert planned[1].reason == "requires the variable 'KEY', which is not set. Export it."
    assert planned[2].reason == "needs 'b', which is blocked"


def test_all_that_a_step_lacks_is_in_its_reason_a_line_for_each(graph: Graph) -> None:
    awaited = MissingRequirement(
        verb="requests", what="1 GPU, which no node has now", remedy="It waits.", certain=False
    )
    package = MissingRequirement(verb="needs", what="jax, which is not installed", remedy="Run: uv sync")
    planned = refuse(plan(graph, observe(graph)), {"b": (awaited, package)})
    assert planned[1].action is Action.BLOCKED
    assert planned[1].reason.splitlines() == [awaited.phrase, package.phrase]


def test_what_a_cluster_may_still_get_blocks_nothing(graph: Graph) -> None:
    requirement = MissingRequirement(
        verb="requests", what="1 GPU, which no node has now", remedy="It waits.", certain=False
    )
    planned = refuse(plan(graph, observe(graph)), {"b": (requirement,)})
    assert [item.action for item in planned] == [Action.RUN] * 3
    assert planned[1].reason.endswith("; requests 1 GPU, which no node has now. It waits.")


def test_a_step_that_is_reused_lacks_nothing(graph: Graph) -> None:
    requirement = MissingRequirement(verb="requires", what="the variable 'KEY', which is not set", remedy="Export it.")
    done = {"status": Status.SUCCESS, "match": Match.SAME}
    assert [item.action for item in refuse(plan(graph, observe(graph, b=done)), {"b": (requirement,)})][
        1
    ] is Action.REUSE

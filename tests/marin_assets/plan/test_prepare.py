"""The plan of real outputs: what it says of each after a change, and how a large one reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bucket_for_tests import BucketForTests

from marin_assets.plan.plan import Action, Kind, Planned
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.plan.render.json_fields import plan_as_json
from marin_assets.plan.render.text import lines_of
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.storage.files import remove_folder, write_bytes
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join


@dataclass(frozen=True, kw_only=True)
class Config:
    inputs: tuple[Any, ...] = ()
    seed: Any = versioned(1)
    note: str = ""
    output_path: str = THIS_OUTPUT_PATH


def work(config: Config) -> dict[str, int]:
    return {"documents": 1}


def step(name: str, *inputs: Any, seed: Any = 1, note: str = "") -> Step:
    return Step(name=name, fn=work, config=Config(inputs=inputs, seed=versioned(seed), note=note))


def tree(count: int, seed: Any = 1) -> list[Step]:
    """A root, and steps that are made from it: each from one before it."""
    steps = [step("raw/root", seed=seed)]
    for i in range(1, count):
        steps.append(step(f"documents/s{i}", steps[(i - 1) // 3]))
    return steps


def publish(store: Store, steps: Sequence[Step], duration_s: float | None = None) -> None:
    graph = build_graph(steps)
    for node in graph:
        seen = {label: store.look([output])[output] for label, output in node.inputs.items()}
        facts = describe_node(node, store, resolved_config(node, graph, store), seen, None)
        claimed = store.claim(node.output, attempt=1, resumable=False, run_id=None)
        write_bytes(join(claimed.path, "data.txt"), b"12345")
        timing = {} if duration_s is None else {"timing": {"compute_s": duration_s}}
        store.publish(claimed, {**facts, **timing}, {"documents": 1})


def planned(store: Store, steps: Sequence[Step], **how: Any) -> list[Planned]:
    graph = build_graph(steps)
    return prepare_plan(graph, store, list(graph), **how)


def reasons(store: Store, steps: Sequence[Step], **how: Any) -> dict[str, tuple[Action, Kind, str]]:
    return {item.node.name: (item.action, item.kind, item.reason) for item in planned(store, steps, **how)}


def text(store: Store, steps: Sequence[Step], **how: Any) -> list[str]:
    return list(lines_of(planned(store, steps, **how)))


BULK = {"exact_up_to": 0}


@pytest.mark.parametrize("how", [{}, BULK])
def test_a_changed_field_is_the_reason_of_its_step_and_of_all_that_is_made_from_it(
    disk_or_gcs_prefix: str, how: dict[str, Any]
) -> None:
    store = Store(disk_or_gcs_prefix)
    publish(store, tree(5))
    assert reasons(store, tree(5, seed=2), **how) == {
        "raw/root": (Action.RUN, Kind.CHANGED, "seed: 1 -> 2"),
        **{f"documents/s{i}": (Action.RUN, Kind.CHANGED, "'raw/root' changed (seed: 1 -> 2)") for i in range(1, 5)},
    }


def test_the_comparison_is_with_the_newest_earlier_output(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    publish(store, [step("a", seed=1)])
    publish(store, [step("a", seed=2)])
    [item] = planned(store, [step("a", seed=3)])
    newest = {each.finished_s for each in [item.why.earlier]}
    assert item.reason in ("seed: 2 -> 3", "seed: 1 -> 3")  # both may have finished in one second
    assert len(newest) == 1


def test_why_an_input_changed_is_followed_through_steps_that_are_complete_again(disk_prefix: str) -> None:
    """The reader runs; its input was computed already, after the change above it."""
    store = Store(disk_prefix)
    publish(store, tree(3))
    publish(store, tree(2, seed=2))
    found = reasons(store, tree(3, seed=2), **BULK)
    assert found["documents/s1"][0] is Action.REUSE
    assert found["documents/s2"] == (Action.RUN, Kind.CHANGED, "'raw/root' changed (seed: 1 -> 2)")


def test_a_long_chain_of_steps_names_its_root(disk_prefix: str) -> None:
    def chain(seed: int) -> list[Step]:
        steps = [step("raw/root", seed=seed)]
        for i in range(1, 60):
            steps.append(step(f"s{i}", steps[-1]))
        return steps

    store = Store(disk_prefix)
    publish(store, chain(1))
    assert reasons(store, chain(2))["s59"] == (Action.RUN, Kind.CHANGED, "'raw/root' changed (seed: 1 -> 2)")


def test_an_earlier_version_that_is_not_recorded_is_said_to_be_so(disk_prefix: str) -> None:
    def chain(seed: int) -> list[Step]:
        steps = [step("raw/root", seed=seed)]
        for i in range(1, 8):
            steps.append(step(f"s{i}", steps[-1]))
        return steps

    store = Store(disk_prefix)
    publish(store, chain(1))
    graph = build_graph(chain(1))
    for node in list(graph)[:-1]:
        remove_folder(store.locate(node.output))
    assert reasons(store, chain(2))["s7"][2] == "'s6' changed (its earlier version is not recorded)"


def test_a_new_step_has_no_earlier_output(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    publish(store, [step("a")])
    found = reasons(store, [step("b", step("a")), step("c", step("b", step("a")))])
    assert found["b"] == (Action.RUN, Kind.NEW, "no output of this version yet")
    assert found["c"] == (Action.RUN, Kind.NEW, "new, as 'b' is")


@pytest.mark.parametrize("how", [{}, BULK])
def test_an_output_that_was_removed_by_hand_is_said_to_be_so(disk_or_gcs_prefix: str, how: dict[str, Any]) -> None:
    store = Store(disk_or_gcs_prefix)
    publish(store, [step("a")])
    remove_folder(store.locate(build_graph([step("a")]).nodes[0].output))
    assert reasons(store, [step("a")], **how)["a"] == (
        Action.RUN,
        Kind.REMOVED,
        "it was complete, and its folder was removed",
    )


@pytest.mark.parametrize("how", [{}, BULK])
def test_drift_is_part_of_the_reason_of_a_reuse(disk_prefix: str, how: dict[str, Any]) -> None:
    store = Store(disk_prefix)
    publish(store, [step("a", note="one")])
    action, _, reason = reasons(store, [step("a", note="two")], **how)["a"]
    assert action is Action.REUSE
    assert reason.startswith("complete; since it was computed, the unversioned field 'note' ('one', now 'two')")


def test_what_is_forced_runs_and_its_readers_are_said_to_drift(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    steps = [step("a"), step("b", step("a"))]
    publish(store, steps)
    forced = [build_graph([steps[0]]).nodes[0].output]
    found = reasons(store, steps, forced=forced)
    assert found["a"] == (Action.RUN, Kind.FORCED, "forced")
    assert found["b"] == (Action.REUSE, Kind.COMPLETE, "complete; its input 'a' is computed again, so it may drift")


@pytest.mark.long
def test_a_change_at_the_root_of_many_steps_is_read_in_ten_lines(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    publish(store, tree(100))
    lines = text(store, tree(100, seed=2))
    assert len(lines) <= 10
    assert lines[0] == f"run      {store.prefix}/{build_graph(tree(1, seed=2)).nodes[0].output.relative()}"
    assert "run      99 steps: 'raw/root' changed (seed: 1 -> 2)" in lines
    assert lines[-1].startswith("100 to run; expected ")


def sweep(rate: float, note: str = "", count: int = 40) -> list[Step]:
    """Members with values of their own, and what is made from each."""
    found = []
    for i in range(count):
        member = Step(
            name=f"train/m{i}", fn=work, config=Config(seed=versioned(rate + i), note=f"{note} {i}" if note else "")
        )
        found += [member, step(f"evaluations/m{i}", member)]
    return found


def test_a_field_that_changed_to_values_of_their_own_is_one_group_of_a_sweep(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    publish(store, sweep(0.5))
    lines = [line.strip() for line in text(store, sweep(1000.5))]
    assert len(lines) <= 10
    assert (
        "run      40 steps: seed: 0.5 -> 1000.5; seed: 1.5 -> 1001.5; seed: 2.5 -> 1002.5; and 37 more with other "
        "values" in lines
    )
    assert "'train/m0' changed (seed: 0.5 -> 1000.5); 'train/m1' changed (" in "\n".join(lines)
    assert len(text(store, sweep(1000.5), exact_up_to=0)) == len(lines)


def test_drift_with_values_of_their_own_and_errors_are_one_group_each(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    publish(store, sweep(0.5, "old", count=8))
    failing = build_graph([step(f"failing/m{i}") for i in range(8)])
    for i, node in enumerate(failing):
        claimed = store.claim(node.output, attempt=1, resumable=False, run_id=None)
        store.fail(claimed, {}, f"ValueError: {i}", "")
    lines = text(store, [*sweep(0.5, "new", count=8), *(node.step for node in failing)])
    assert len(lines) <= 10
    assert any(line.startswith("reuse    8 steps") and line.endswith("and 5 more with other values") for line in lines)
    assert any(line.startswith("run      8 steps: its last attempt failed: ValueError: 0") for line in lines)
    assert any(line.endswith("and 5 more with other errors") for line in lines)


def test_few_reasons_that_differ_in_their_values_are_apart(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    publish(store, [*tree(20), step("raw/other", seed=5)])
    lines = text(store, [*tree(20, seed=2), step("raw/other", seed=6)])
    assert "         seed: 1 -> 2" in lines
    assert "         seed: 5 -> 6" in lines


def test_what_it_takes_is_the_median_of_earlier_outputs_and_nothing_without_them(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    for seed, seconds in ((1, 10.0), (2, 100.0), (3, 3000.0)):
        publish(store, [step("a", seed=seed)], duration_s=seconds)
    a, b = planned(store, [step("a", seed=4), step("b")])
    assert a.expected is not None
    assert (a.expected.compute_s, a.expected.outputs, a.expected.device_hours) == (100.0, 3, None)
    assert b.expected is None
    lines = text(store, [step("a", seed=4), step("b")])
    assert "expected 1 min 40 s (the median of 3 outputs)" in "\n".join(lines)
    assert lines[-1] == "2 to run; expected 1 min 40 s; 1 of 2 have no estimate"


def test_the_json_has_all_of_it(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    publish(store, tree(2))
    found = json.loads(json.dumps(plan_as_json(planned(store, [*tree(2, seed=[2]), step("c")]), store.prefix)))
    assert found["counts"] == {"run": 3, "reuse": 0, "wait": 0, "blocked": 0}
    root, child, new = found["outputs"]
    assert root["causes"] == [{"step": "raw/root", "field": "seed", "was": 1, "now": [2]}]
    assert child["causes"] == root["causes"]
    assert child["changed_inputs"] == ["raw/root"]
    assert new["kind"] == "new"
    assert "causes" not in new


def test_a_reused_output_has_its_size(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    publish(store, tree(30))
    assert text(store, tree(30), **BULK) == [
        "reuse    30 steps, 150 B: complete",
        "         raw/root, documents/s1, documents/s2, documents/s3, documents/s4, documents/s5 and 24 more",
        "30 to reuse, 150 B reused",
    ]


@pytest.mark.long
def test_a_large_plan_takes_few_requests(gcs_bucket: BucketForTests) -> None:
    store = Store(gcs_bucket.prefix)
    publish(store, tree(66))
    for _ in range(2):  # the first packs the records
        planned(store, tree(66), **BULK)
    before = gcs_bucket.requests_made()
    assert all(item.action is Action.REUSE for item in planned(store, tree(66), **BULK))
    assert gcs_bucket.requests_made() - before <= 6


def test_a_prefix_that_does_not_exist_is_planned(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "none"))
    assert reasons(store, [step("a")], **BULK)["a"][1] is Kind.NEW
    assert not (tmp_path / "none").exists()

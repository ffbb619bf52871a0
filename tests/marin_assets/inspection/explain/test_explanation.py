"""Why an output was computed: recipe, inputs, code and environment against those of the output before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from partition_steps import part
from recorded_steps import Recorded, chain, step

from marin_assets.inspection.explain.explanation import Explanation, Why, explain
from marin_assets.inspection.explain.lines import lines_of
from marin_assets.inspection.explain.materializations import NoMaterializationError, materializations, newest_at
from marin_assets.step.graph import build_graph
from marin_assets.step.partitions.sets import static
from marin_assets.step.values import versioned
from marin_resources.storage.files import remove, remove_folder, write_bytes
from marin_resources.storage.output.store import Store


@pytest.fixture
def here(disk_prefix: str) -> Recorded:
    return Recorded(Store(disk_prefix))


def explained(here: Recorded, name: str, at: str | None = None) -> Explanation:
    known = materializations(here.store.prefix, name)
    return explain(here.store.prefix, known[0] if at is None else newest_at(known, at), known)


def said(found: Explanation) -> str:
    return "\n".join(lines_of(found, "x"))


def fields_of(found: Explanation) -> list[str]:
    return [each.describe() for each in found.recipe.fields]


def root_fields(found: Explanation) -> dict[str, list[str]]:
    return {each.name: [f.describe() for f in each.differences.fields] for each in found.inputs if each.differences}


def test_the_first_output_of_a_step_has_nothing_before_it(here: Recorded) -> None:
    here.make(step("x"))
    found = explained(here, "x")
    assert (found.why, found.before) == (Why.FIRST, None)
    assert "first output of this step" in said(found)


def test_a_changed_field_is_the_reason_with_both_values(disk_or_gcs_prefix: str) -> None:
    here = Recorded(Store(disk_or_gcs_prefix))
    was, now = here.make(step("x", 0.003)), here.make(step("x", 0.001))
    found = explained(here, "x")
    assert found.before is not None
    assert (found.before.version, found.this.version) == tuple(graph.nodes[0].version.hash for graph in (was, now))
    assert fields_of(found) == ["value: 0.003 -> 0.001"]
    assert (found.inputs, found.drift, found.why) == ((), (), Why.RECIPE)
    assert "value: 0.003 -> 0.001" in said(found)


def test_a_changed_input_is_followed_to_the_field_that_was_changed(here: Recorded) -> None:
    here.make(chain("a b c"))
    here.make(chain("a b c", a=2))
    found = explained(here, "chain/c")
    assert fields_of(found) == []
    assert root_fields(found) == {"chain/b": [], "chain/a": ["value: 1 -> 2"]}
    assert "because of chain/a" in said(found)


def test_an_input_far_above_is_followed_through_its_record_while_one_is_left(here: Recorded) -> None:
    names = "a b c d e f g h"
    was, now = here.make(chain(names)), here.make(chain(names, a=2))
    assert root_fields(explained(here, "chain/h"))["chain/a"] == ["value: 1 -> 2"]
    for graph in (was, now):
        here.collect(next(node for node in graph if node.name == "chain/f"))
    assert root_fields(explained(here, "chain/h"))["chain/a"] == ["value: 1 -> 2"]
    remove_folder(f"{here.store.prefix}/.marin/history/chain")
    found = explained(here, "chain/h")
    assert found.inputs[-1].differences is None
    assert "no record of one of them is left" in said(found)


def test_an_output_that_was_collected_is_computed_again(here: Recorded) -> None:
    [node] = here.make(step("x"))
    here.collect(node)
    here.make(step("x"))
    found = explained(here, "x")
    assert found.why is Why.AGAIN
    assert "the same version was complete before" in said(found)
    assert [each.removed for each in materializations(here.store.prefix, "x")] == [False, True]


def test_an_output_that_was_removed_by_hand_is_computed_again_though_no_record_is_left(disk_or_gcs_prefix: str) -> None:
    here = Recorded(Store(disk_or_gcs_prefix))
    here.make(step("x", 1))
    [node] = graph = here.make(step("x", 2))
    remove_folder(here.store.locate(node.output))
    here.store.fail(here.claim(node), here.facts_of(node, graph), "ValueError: no", "Traceback …")
    here.make(step("x", 2))  # the second attempt
    found = explained(here, "x")
    assert found.why is Why.AGAIN
    assert "it was removed by hand or forced" in said(found)
    assert fields_of(found) == ["value: 1 -> 2"]  # against the newest output with a record


def test_an_output_that_was_withdrawn_and_still_lies_there_is_known(here: Recorded) -> None:
    [node] = here.make(step("x", 1))
    remove(f"{here.store.locate(node.output)}/.executor_status")
    here.make(step("x", 2))
    found = explained(here, "x")
    assert found.before is not None
    assert (found.why, found.before.removed) == (Why.RECIPE, True)


def test_attempts_that_failed_or_died_before_are_told_with_their_errors(here: Recorded) -> None:
    here.make(step("x", 1))
    [node] = graph = build_graph([step("x", 2)])
    here.store.fail(here.claim(node), here.facts_of(node, graph), "ValueError: no", "Traceback …")
    here.claim(node).lease.release()  # a worker that died
    here.publish(node, graph, {})
    found = explained(here, "x")
    assert [(each.number, each.outcome, each.error) for each in found.attempts] == [
        (1, "failed", "ValueError: no"),
        (2, "died", ""),
    ]
    assert "attempt 1 failed: ValueError: no" in said(found)


def test_a_failure_is_explained_too(here: Recorded) -> None:
    here.make(step("x", 1))
    [node] = graph = build_graph([step("x", 2)])
    here.store.fail(here.claim(node), here.facts_of(node, graph), "ValueError: no", "Traceback …")
    found = explained(here, "x")
    assert (found.this.complete, fields_of(found)) == (False, ["value: 1 -> 2"])
    assert "ValueError: no" in said(found)


def test_code_environment_and_unversioned_fields_are_compared_besides_the_recipe(here: Recorded) -> None:
    source = {"function": "m:work", "digest": "1", "files_digest": "1", "modules": {"m": "1"}}
    one: dict[str, Any] = {"source_digest": source, "environment": {"lock_digest": "1", "python": "3.11.1"}}
    here.make(step("x", 1, note="before"), **one, git={"commit": "a" * 40, "dirty": False})
    other = {
        "source_digest": {**source, "modules": {"m": "2"}, "digest": "2"},
        "environment": {"lock_digest": "2", "python": "3.12.1"},
    }
    here.make(step("x", 2, note="after"), **other, git={"commit": "b" * 40, "dirty": True})
    text = said(explained(here, "x"))
    for sentence in (
        "The unversioned field 'note' was 'before' and is 'after' now.",
        "The source of 'm' changed.",
        "The environment's 'uv.lock' changed.",
        "The environment's 'Python' was '3.11' and is '3.12' now.",
        f"{'a' * 12} -> {'b' * 12} with changes",
    ):
        assert sentence in text, text
    assert "'value'" not in text  # a field of the recipe is named once, there


def test_an_input_of_the_same_version_with_other_content_is_named(here: Recorded) -> None:
    source = step("data")
    here.make(step("x", 1, source))
    here.make(step("x", 2, source), inputs={"data": "another digest"})
    assert "data: the same version with other content" in said(explained(here, "x"))


def test_what_was_not_recorded_is_not_called_the_same(here: Recorded) -> None:
    here.make(step("x", 1), environment=None, source_digest=None, git=None)
    here.make(step("x", 2))
    lines = {line.split()[0]: line for line in said(explained(here, "x")).splitlines() if line[0] != " "}
    assert lines["environment"].endswith("not recorded")
    assert lines["code"].endswith("not recorded")
    assert lines["commit"].split()[1:3] == ["not", "recorded"]


def test_a_partition_is_explained_by_its_own_outputs(here: Recorded, tmp_path: Path) -> None:
    keys = static("a", "b")
    for value, key in ((1, "a"), (2, "b"), (2, "a")):
        graph = build_graph([part("x", keys, value=versioned(value), calls=tmp_path / "calls")])
        here.publish(graph.nodes[0].at(key), graph, {})
    known = materializations(here.store.prefix, "parts/x", "a")
    assert fields_of(explain(here.store.prefix, known[0], known)) == ["value: 1 -> 2"]
    known = materializations(here.store.prefix, "parts/x", "b")
    assert explain(here.store.prefix, known[0], known).why is Why.FIRST
    here.collect(graph.nodes[0].at("a"))
    known = materializations(here.store.prefix, "parts/x", "a")
    assert [each.removed for each in known] == [True, False]


def test_a_record_that_is_damaged_does_not_keep_the_others_from_being_explained(
    here: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    [damaged] = here.make(step("x", 1))
    here.make(step("x", 2))
    here.make(step("x", 3))
    write_bytes(f"{here.store.locate(damaged.output)}/.executor_info", b"{")
    assert fields_of(explained(here, "x")) == ["value: 2 -> 3"]
    assert "is not JSON" in caplog.text


def test_one_is_found_by_its_version_its_run_or_a_day(here: Recorded) -> None:
    [first] = here.make(step("x", 1), dagster_run_id="1905a43a-ace1-49c5-ba19-6c88527d19c4")
    here.make(step("x", 2))
    known = materializations(here.store.prefix, "x")
    assert newest_at(known, first.version.hash) == known[1]
    assert newest_at(known, "1905a43a") == known[1]
    assert known[1].finished is not None
    assert newest_at(known, known[1].finished.isoformat()) in known
    assert newest_at(known, f"{known[0].finished:%Y-%m-%d}") == known[0]
    for wrong in ("000000", "1999-01-01", "last week"):
        with pytest.raises(NoMaterializationError, match=f"{wrong!r}.* known"):
            newest_at(known, wrong)

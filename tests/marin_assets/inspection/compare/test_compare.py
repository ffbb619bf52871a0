"""In what two sides differ, in which order, and with which scores."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_steps import Recorded, chain, step

from marin_assets.inspection.compare.compare import Comparison, compare
from marin_assets.inspection.compare.experiment_side import side_of_experiment
from marin_assets.inspection.compare.lines import lines_of
from marin_assets.inspection.compare.run_side import side_of_recorded_run, side_of_run
from marin_assets.inspection.compare.scores import Scores, scores_of
from marin_assets.inspection.compare.side import Side
from marin_assets.step.step import Step
from marin_resources.storage.output.store import Store


@pytest.fixture
def here(disk_prefix: str) -> Recorded:
    return Recorded(Store(disk_prefix))


def side(here: Recorded, *steps: Step) -> Side:
    return side_of_experiment("e", steps, here.store)


def names(some: Any) -> list[str]:
    return [each.name for each in some]


def text_of(found: Comparison, scores: Scores) -> list[str]:
    return list(lines_of(found, scores))


def test_steps_that_differ_themselves_come_before_those_that_differ_because_of_them(here: Recorded) -> None:
    found = compare(side(here, chain("a b c d e f g h")), side(here, chain("a b c d e f g h", b=2, g=3)))
    assert names(found.changed) == ["chain/b", "chain/g"]
    assert names(found.because) == ["chain/c", "chain/d", "chain/e", "chain/f", "chain/h"]
    assert found.same == ("chain/a",)
    lines = text_of(found, scores_of(found, here.store.prefix))
    assert lines[3] == "    value: 1 -> 2"
    assert "5 steps differ only because of their inputs: chain/c, chain/d, chain/e, chain/f, chain/h" in lines
    assert "1 step the same" in lines


def test_steps_of_one_side_alone_are_listed_and_a_renamed_step_is_another_one(here: Recorded) -> None:
    found = compare(side(here, step("a"), step("b")), side(here, step("b"), step("c")))
    assert (found.only_a, found.only_b, found.same) == (("a",), ("c",), ("b",))
    found = compare(side(here, step("a")), side(here, step("c")))
    assert "No step of A has the name of a step of B. Steps are compared by name alone." in text_of(
        found, scores_of(found, here.store.prefix)
    )


def test_scores_are_side_by_side_and_missing_where_they_are_not_computed(disk_or_gcs_prefix: str) -> None:
    here = Recorded(Store(disk_or_gcs_prefix))
    was, now = step("score", 1), step("score", 2)
    here.make(was, result={"acc": 0.25, "of": {"arc": 3}, "gone": 1, "held": True})
    found = compare(side(here, was), side(here, now))
    scores = scores_of(found, here.store.prefix)
    assert (scores.missing_a, scores.missing_b) == ((), ("score",))
    assert "not computed in B: score" in text_of(found, scores)
    here.make(now, result={"acc": 0.5, "of": {"arc": 4}})
    scores = scores_of(found, here.store.prefix)
    assert [(each.number, each.a, each.b, each.difference) for each in scores.scores] == [
        ("acc", 0.25, 0.5, 0.25),
        ("of.arc", 3, 4, 1),
        ("gone", 1, None, None),
    ]
    assert [line.split() for line in text_of(found, scores)[-3:]] == [
        ["acc", "0.25", "0.5", "+0.25"],
        ["of.arc", "3", "4", "+1"],
        ["gone", "1", "-"],
    ]


def test_scores_of_an_output_that_was_collected_are_in_its_record(here: Recorded) -> None:
    was, now = step("score", 1), step("score", 2)
    [node] = here.make(was, result={"acc": 0.25})
    here.collect(node)
    found = compare(side(here, was), side(here, now))
    assert [(each.number, each.a, each.b) for each in scores_of(found, here.store.prefix).scores] == [
        ("acc", 0.25, None)
    ]


def test_a_run_is_compared_by_the_records_of_its_outputs_and_of_what_these_were_made_from(here: Recorded) -> None:
    names_of = "a b c d e f g"
    was = here.make(chain(names_of), dagster_run_id="11111111-a")
    now = here.make(chain(names_of, a=2), dagster_run_id="22222222-b")
    paths = [[here.store.locate(graph.nodes[-1].output)] for graph in (was, now)]
    found = compare(side_of_run("1", paths[0], here.store.prefix), side_of_run("2", paths[1], here.store.prefix))
    assert names(found.changed) == ["chain/a"]
    assert len(found.because) == 6
    first, second = (side_of_recorded_run(begins, here.store.prefix) for begins in ("11111111", "2222"))
    assert first is not None
    assert second is not None
    assert names(compare(first, second).changed) == ["chain/a"]
    assert "does not know run 11111111-a" in first.note
    assert side_of_recorded_run("33333333", here.store.prefix) is None


def test_outputs_of_a_run_that_left_no_record_are_counted(here: Recorded) -> None:
    found = side_of_run("1", [f"{here.store.prefix}/gone-123456"], here.store.prefix)
    assert (len(found.steps), found.note) == (0, "Of 1 outputs of run 1 no record is left.")

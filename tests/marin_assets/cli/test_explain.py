"""`marin explain`: why an output was computed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from location import Location
from one_sentence import one_sentence
from recorded_steps import Recorded, step

Marin = Callable[..., tuple[int, str, str]]


def test_a_step_of_the_code_is_explained(made: Location, marin: Marin) -> None:
    code, out, _ = marin("explain", "model")
    assert code == 0
    first, *others = out.splitlines()
    assert first.startswith("toy/model, version ")
    assert any("first output of this step" in line for line in others)


def test_a_step_that_the_code_has_no_more_is_explained_by_its_name(location: Location, marin: Marin) -> None:
    here = Recorded(location.store)
    here.make(step("gone/x", 1))
    here.make(step("gone/x", 2), dagster_run_id="12345678-0000-0000-0000-000000000000")
    code, out, _ = marin("explain", "gone/x", "--json")
    found = json.loads(out)
    assert (code, found["why"], found["recipe"]) == (0, "recipe", [{"field": "value", "was": 1, "now": 2}])
    code, out, _ = marin("explain", "gone/x", "--list")
    assert [line.split()[4] for line in out.splitlines()] == ["complete", "complete"]
    code, out, _ = marin("explain", "gone/x", "--at", "12345678", "--json")
    assert json.loads(out)["this"]["dagster_run_id"].startswith("12345678")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("nonsense",), "finds none of the steps"),
        (("toy",), "expected one step"),
        (("database",), "No record of the step 'toy/database'"),
        (("model", "--at", "yesterday"), "'yesterday'"),
        (("model", "--partition", "a"), "has no partitions"),
    ],
)
def test_wrong_words_are_one_sentence(made: Location, marin: Marin, words: tuple[str, ...], part: str) -> None:
    code, out, err = marin("explain", *words)
    assert (code, out) == (2, "")
    assert part in one_sentence(ValueError(err.rstrip("\n")))

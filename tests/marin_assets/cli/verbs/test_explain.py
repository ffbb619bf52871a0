"""`marin explain`: why an output was computed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from location import Location
from one_sentence import one_sentence
from recorded_steps import Recorded, step

from marin_assets.plan.record_facts.adopted_inputs import facts_of_adopted
from marin_assets.step.graph import build_graph
from marin_resources.storage.adoption.adopt import adopt
from marin_resources.storage.adoption.source import find_source
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

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


def test_an_adopted_output_is_explained_beside_an_earlier_one_that_was_computed(
    location: Location, marin: Marin
) -> None:
    here = Recorded(location.store)
    here.make(step("gone/x", 1))
    node = build_graph([step("gone/x", 2)]).nodes[0]
    mine = join(location.store.prefix, "mine")
    write_bytes(join(mine, "data.txt"), b"1")
    source = find_source(mine, location.store, node.output, checksums=False)
    facts = facts_of_adopted(node, location.store, source)
    adopt(location.store, node.output, source, facts, why="made by hand", by="me")
    code, out, err = marin("explain", "gone/x")
    assert code == 0, err
    lines = out.splitlines()
    assert f"why          it was not computed: it is adopted from {mine!r}, as 'made by hand'" in lines
    assert "recipe       value: 1 -> 2" in lines
    assert "config       not recorded" in lines
    here.make(step("gone/x", 3))
    assert marin("explain", "gone/x", "--at", build_graph([step("gone/x", 3)]).nodes[0].version.hash)[0] == 0


def test_a_damaged_record_is_explained_by_its_copy_and_without_one_it_is_the_error(
    made: Location, marin: Marin
) -> None:
    record = join(made.path("toy/model"), ".executor_info")
    write_bytes(record, b"[")
    code, out, err = marin("explain", "model")
    assert (code, out.startswith("toy/model, version ")) == (0, True)
    assert (repr(record) in err, err.count("\n")) == (True, 1)
    write_bytes(join(made.path("toy/model"), ".marin/manifest.json"), b"[")
    code, out, err = marin("explain", "model")
    assert (code, out, repr(record) in err, err.count("\n")) == (1, "", True, 1)


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

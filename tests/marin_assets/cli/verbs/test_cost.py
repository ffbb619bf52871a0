"""`marin cost`: what an output has cost."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from location import Location
from one_sentence import one_sentence
from recorded_steps import Recorded, step

Marin = Callable[..., tuple[int, str, str]]


def test_what_a_step_has_cost_is_printed_and_what_it_costs_today(made: Location, marin: Marin) -> None:
    code, out, _ = marin("cost", "model")
    assert code == 0
    assert "Today it costs nothing: it is complete, and a run reuses it." in out.splitlines()
    assert "1 of 1 step has no record of CPU seconds" in out.splitlines()
    code, out, _ = marin("cost", "model", "--json")
    found = json.loads(out)
    assert (found["step"], found["to_make"]["wall_s"]["known"], found["to_make"]["cpu_s"]["unknown"]) == (
        "toy/model",
        1,
        1,
    )


@pytest.mark.parametrize("disk_or_gcs_prefix", ["disk"], indirect=True)
def test_a_step_that_the_code_has_no_more_has_a_cost(location: Location, marin: Marin) -> None:
    Recorded(location.store).make(step("gone/x", 1, step("gone/raw")))
    code, out, _ = marin("cost", "gone/x")
    assert code == 0
    assert out.startswith("gone/x, version ")
    assert "2 outputs with all that it was made from" in out
    assert "The code has no such step any more: nothing makes it today." in out


@pytest.mark.parametrize("disk_or_gcs_prefix", ["disk"], indirect=True)
def test_wrong_words_are_one_sentence(location: Location, marin: Marin, monkeypatch: pytest.MonkeyPatch) -> None:
    location.make("toy/data")
    code, _, err = marin("cost", "database")
    assert (code, "No record of the step 'toy/database'" in one_sentence(ValueError(err.strip()))) == (2, True)
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "v99=1@2026-11-01")
    code, _, err = marin("cost", "data")
    assert (code, "v99" in one_sentence(ValueError(err.strip()))) == (2, True)

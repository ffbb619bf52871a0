from __future__ import annotations

import pytest

from marin_assets.step.expectation import expect


@pytest.mark.parametrize(
    ("value", "holds"), [(499, False), (500, True), (600.5, True), (1000, True), (1000.1, False), ("700", False)]
)
def test_bounds_are_inclusive_and_want_a_number(value: object, holds: bool) -> None:
    assert expect("pages", at_least=500, at_most=1000).holds({"pages": value}) is holds


def test_a_missing_number_does_not_hold() -> None:
    expectation = expect("pages", at_most=10)
    assert expectation.value_in({}) is None
    assert not expectation.holds({})


def test_not_a_number_does_not_hold() -> None:
    assert not expect("loss", at_most=10).holds({"loss": float("nan")})


def test_a_dotted_name_looks_into_a_nested_result() -> None:
    expectation = expect("loss.final", at_most=5)
    assert expectation.holds({"loss": {"final": 4.9}})
    assert not expectation.holds({"loss": 3})
    assert expectation.name == "loss_final"


def test_an_expectation_says_what_it_wants() -> None:
    assert expect("pages", at_least=500).describe() == "pages at least 500"
    assert expect("loss", at_least=1, at_most=2.5).describe() == "loss at least 1 and at most 2.5"


def test_an_expectation_without_a_bound_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expect\('pages'\) has no bound"):
        expect("pages")

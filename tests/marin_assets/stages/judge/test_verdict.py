"""Verdicts by the grammars of the prompts."""

from __future__ import annotations

import pytest

from marin_assets.stages.judge.verdict import grade_of, preference_of


@pytest.mark.parametrize(
    ("answer", "preference"),
    [
        ("A is short. [[A]]", 1.0), ("[[ B ]]", 0.0), ("[[C]]", 0.5), ("A", 1.0), (" B.\n", 0.0), ("**C**", 0.5),
        ("[[A]], so [[A]]", 1.0), ("", "no_verdict"), ("A is better", "no_verdict"), ("[A]", 1.0),
        ("[[A]] or [[B]]", "several_verdicts"), ("[[D]]", "unknown_verdict"), ("[[a]]", "unknown_verdict"),
    ],
)  # fmt: skip
def test_a_choice(answer: str, preference: float | str) -> None:
    assert preference_of(answer) == preference


@pytest.mark.parametrize(
    ("answer", "grade"),
    [
        ("Of 10 facts 3 are wrong. Rating: [[7]]", 7.0), ("[[7.5]]", 7.5), ("[[10/10]]", 10.0), ("[[1]] … [[1]]", 1.0),
        ("7", "no_verdict"), ("[7]", "no_verdict"), ("[[seven]]", "no_verdict"), ("[[0]]", "off_the_scale"),
        ("[[11]]", "off_the_scale"), ("[[-3]]", "off_the_scale"), ("[[3]] then [[4]]", "several_verdicts"),
    ],
)  # fmt: skip
def test_a_grade(answer: str, grade: float | str) -> None:
    assert grade_of(answer) == grade

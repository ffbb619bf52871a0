"""Texts whose inputs are the beginning of one another are scored in one row, and each text in exactly one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marin_assets.inference.prefix_sharing import share_rows

WINDOW = 8


def room(inputs: int) -> int:
    return WINDOW


def test_the_choices_of_a_question_are_one_row_if_they_differ_in_their_last_token() -> None:
    question = [0, 5, 6, 7]
    rows = share_rows([[*question, choice] for choice in (1, 2, 3, 4)], [1] * 4, room)
    assert [(list(row.inputs), sorted(row.members), row.scored) for row in rows] == [(question, [0, 1, 2, 3], 4)]


def test_a_text_shares_the_row_of_one_that_goes_on_from_it() -> None:
    texts = [[0, 1, 9], [0, 1, 2, 9], [0, 1, 3, 9], [0, 1, 2, 4, 9], [7, 9]]
    rows = share_rows(texts, [1] * 5, room)
    assert sorted(sorted(row.members) for row in rows) == [[0, 1, 3], [2], [4]]


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=6), max_size=12), st.data())
def test_every_text_is_scored_once_after_its_own_inputs(texts: list[list[int]], data: st.DataObject) -> None:
    counts = [data.draw(st.integers(1, len(text) - 1)) for text in texts]
    rows = share_rows(texts, counts, room)
    assert sorted(i for row in rows for i in row.members) == list(range(len(texts)))
    for row in rows:
        assert row.scored == sum(counts[i] for i in row.members) <= WINDOW
        assert any(texts[i][:-1] == row.inputs for i in row.members)
        for i in row.members:
            assert row.inputs[: len(texts[i]) - 1] == texts[i][:-1]

"""Texts whose inputs are the beginning of one another are scored in one row, and each text in exactly one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marin_assets.inference.prefix_sharing import pack_rows, share_rows

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


def test_the_choices_of_a_question_are_packed_behind_one_context() -> None:
    question = [0, 5, 6, 7]
    texts = [[*question, 1, 1, 9], [*question, 2, 9], [*question, 3, 9, 9], [8, 8, 8]]
    [alone, packed] = sorted(pack_rows(share_rows(texts, [3, 2, 3, 1], room), 12), key=lambda row: row.length)
    assert (alone.members, alone.is_packed) == ([3], False)
    assert list(packed.tokens()) == [
        *((token, position, 0) for position, token in enumerate(question)),
        *((3, 4, 1), (9, 5, 1), (2, 4, 2), (1, 4, 3), (1, 5, 3)),
    ]
    assert dict(packed.places(texts, [3, 2, 3, 1])) == {2: [3, 4, 5], 1: [3, 6], 0: [3, 7, 8]}


def test_rows_are_packed_only_where_a_quarter_is_saved_and_the_length_allows() -> None:
    texts = [[0, *[n] * 6] for n in (1, 2, 3)]
    assert not any(row.is_packed for row in pack_rows(share_rows(texts, [6] * 3, room), 64)), "they share BOS alone"
    texts = [[*range(8), n, n, n] for n in (1, 2, 3, 4, 5)]
    rows = share_rows(texts, [3] * 5, lambda inputs: 64)
    assert [len(row.members) for row in pack_rows(rows, 12)] == [2, 2, 1]
    assert [len(row.members) for row in pack_rows(rows, 0)] == [1] * 5


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=6), max_size=12), st.data())
def test_in_a_packed_row_a_text_sees_its_own_inputs_at_their_own_positions(
    texts: list[list[int]], data: st.DataObject
) -> None:
    counts = [data.draw(st.integers(1, len(text) - 1)) for text in texts]
    rows = pack_rows(share_rows(texts, counts, room), 9)
    assert sorted(i for row in rows for i in row.members) == list(range(len(texts)))
    for row in rows:
        tokens = list(row.tokens())
        assert len(tokens) == row.length <= 9
        assert row.scored == sum(counts[i] for i in row.members)
        for i, places in row.places(texts, counts):
            inputs = texts[i][:-1]
            branch = max(tokens[place][2] for place in places)
            visible = [token for token in tokens[: places[-1] + 1] if token[2] in (0, branch)]
            assert [token[:2] for token in visible] == [(token, at) for at, token in enumerate(inputs)]
            assert [tokens[place][1] for place in places] == list(range(len(inputs) - counts[i], len(inputs)))

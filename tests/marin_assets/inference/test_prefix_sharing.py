"""Texts whose inputs are the beginning of one another share them, and each text is scored exactly once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marin_assets.inference.prefix_sharing import Row, fill_rows, grow_trees, share_inputs

WINDOW = 8


def room(inputs: int) -> int:
    return WINDOW


def test_the_choices_of_a_question_share_their_inputs_if_they_differ_in_their_last_token() -> None:
    question = [0, 5, 6, 7]
    runs = share_inputs([[*question, choice] for choice in (1, 2, 3, 4)], [1] * 4, room)
    assert [(list(run.inputs), sorted(run.members), run.scored) for run in runs] == [(question, [0, 1, 2, 3], 4)]


def test_a_text_shares_the_inputs_of_one_that_continues_it() -> None:
    texts = [[0, 1, 9], [0, 1, 2, 9], [0, 1, 3, 9], [0, 1, 2, 4, 9], [7, 9]]
    runs = share_inputs(texts, [1] * 5, room)
    assert sorted(sorted(run.members) for run in runs) == [[0, 1, 3], [2], [4]]


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=6), max_size=12), st.data())
def test_every_text_is_scored_once_after_its_own_inputs(texts: list[list[int]], data: st.DataObject) -> None:
    counts = [data.draw(st.integers(1, len(text) - 1)) for text in texts]
    runs = share_inputs(texts, counts, room)
    assert sorted(i for run in runs for i in run.members) == list(range(len(texts)))
    for run in runs:
        assert run.scored == sum(counts[i] for i in run.members) <= WINDOW
        assert any(texts[i][:-1] == run.inputs for i in run.members)
        for i in run.members:
            assert run.inputs[: len(texts[i]) - 1] == texts[i][:-1]


def test_the_choices_of_a_question_follow_one_context() -> None:
    question = [0, 5, 6, 7]
    texts = [[*question, 1, 1, 9], [*question, 2, 9], [*question, 3, 9, 9], [8, 8, 8]]
    [row] = fill_rows(grow_trees(share_inputs(texts, [3, 2, 3, 1], room), 12), 12)
    assert list(row.tokens()) == [
        *((token, position, 1, 1) for position, token in enumerate(question)),
        *((3, 4, 2, 1), (9, 5, 2, 1), (2, 4, 3, 1), (1, 4, 4, 1), (1, 5, 4, 1)),
        *((8, 0, 5, 5), (8, 1, 5, 5)),  # another text, which has a tree of its own
    ]
    assert dict(row.places(texts, [3, 2, 3, 1])) == {2: [3, 4, 5], 1: [3, 6], 0: [3, 7, 8], 3: [10]}


def test_texts_are_a_tree_only_where_a_quarter_is_saved_and_the_length_allows() -> None:
    texts = [[0, *[n] * 6] for n in (1, 2, 3)]
    trees = grow_trees(share_inputs(texts, [6] * 3, room), 64)
    assert [len(tree.branches) for tree in trees] == [1, 1, 1], "they share BOS alone"
    texts = [[*range(8), n, n, n] for n in (1, 2, 3, 4, 5)]
    runs = share_inputs(texts, [3] * 5, lambda inputs: 64)
    assert [len(tree.branches) for tree in grow_trees(runs, 12)] == [2, 2, 1]
    assert [len(tree.branches) for tree in grow_trees(runs, 0)] == [1] * 5


def test_a_tree_is_put_where_it_leaves_the_least_room() -> None:
    texts = [[number] * (length + 1) for number, length in enumerate((5, 7, 3, 4, 1, 2))]
    rows = fill_rows(grow_trees(share_inputs(texts, [1] * 6, room), 10), 10)
    assert [row.members for row in rows] == [[1, 2], [0, 3, 4], [5]]


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=6), max_size=12), st.data())
def test_in_a_filled_row_a_text_sees_its_own_inputs_at_their_own_positions(
    texts: list[list[int]], data: st.DataObject
) -> None:
    counts = [data.draw(st.integers(1, len(text) - 1)) for text in texts]
    rows = fill_rows(grow_trees(share_inputs(texts, counts, room), 9), 9)
    assert sorted(i for row in rows for i in row.members) == list(range(len(texts)))
    for row in rows:
        tokens = list(row.tokens())
        assert len(tokens) == row.length <= 9
        for i, places in row.places(texts, counts):
            assert_sees_its_inputs(row, places, texts[i][:-1], counts[i])


def assert_sees_its_inputs(row: Row, places: list[int], inputs: list[int], count: int) -> None:
    tokens = list(row.tokens())
    *_, part, root = tokens[places[-1]]
    visible = [token for token in tokens[: places[-1] + 1] if token[2] in (part, root)]
    assert [token[:2] for token in visible] == [(token, at) for at, token in enumerate(inputs)]
    assert [tokens[place][1] for place in places] == list(range(len(inputs) - count, len(inputs)))

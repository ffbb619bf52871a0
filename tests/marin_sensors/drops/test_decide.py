"""What is decided about one drop, look by look."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marin_sensors.drops.completeness import Completeness, Manifested, Marked, Settled
from marin_sensors.drops.decide import Known, What, judge
from marin_sensors.drops.seen import Change, Seen, change_between


def seen(files: Mapping[str, str] | None, *beside: str) -> Seen | None:
    return None if files is None else Seen(name="d", stamps=files, bytes=0, beside=frozenset(beside))


def looks(
    each: Sequence[tuple[float, Seen | None]], rule: Completeness, *, revises: bool = False, manifest: bytes = b""
) -> list[tuple[What, int] | None]:
    known: Known | None = None
    found = []
    for now_s, one in each:
        known, finding = judge("d", known, one, now_s, rule, lambda name: manifest, revises=revises)
        found.append((finding.what, finding.revision) if finding else None)
    return found


ONE, TWO = {"a": "1"}, {"a": "1", "b": "2"}
ARRIVING, TAKE, CHANGED, VANISHED, REVERTED = (
    (What.ARRIVING, 1),
    (What.TAKE, 1),
    (What.CHANGED, 1),
    (What.VANISHED, 1),
    (What.REVERTED, 1),
)


def test_a_drop_that_grows_is_taken_when_it_has_settled() -> None:
    each = [(0, seen(ONE)), (50, seen(TWO)), (105, seen(TWO)), (150, seen(TWO)), (999, seen(TWO))]
    assert looks(each, Settled(100)) == [ARRIVING, ARRIVING, ARRIVING, TAKE, None]


def test_a_clock_that_is_set_back_takes_nothing_early_and_loses_nothing() -> None:
    each = [(1000, seen(ONE)), (0, seen(ONE)), (99, seen(ONE)), (100, seen(ONE))]
    assert looks(each, Settled(100)) == [ARRIVING, ARRIVING, ARRIVING, TAKE]


def test_a_marked_drop_is_taken_at_once() -> None:
    each = [(0, seen(ONE)), (1, seen(ONE, "_SUCCESS")), (2, seen(ONE, "_SUCCESS"))]
    assert looks(each, Marked("_SUCCESS")) == [ARRIVING, TAKE, None]


@pytest.mark.parametrize(
    ("manifest", "what"),
    [
        (f"{'0' * 64}  a\n{'1' * 64} *b\n", TAKE),
        (f"{'0' * 64}  ./a\n{'1' * 64}  c\n", ARRIVING),
        ("a\n", ARRIVING),
        ("", ARRIVING),
    ],
)
def test_a_drop_with_a_manifest_is_taken_when_all_that_it_names_is_there(manifest: str, what: tuple[What, int]) -> None:
    assert looks([(0, seen(TWO, "SHA256SUMS"))], Manifested("SHA256SUMS"), manifest=manifest.encode()) == [what]


def test_a_drop_without_a_wanted_file_is_not_taken() -> None:
    assert looks([(0, seen({}, "_SUCCESS"))], Marked("_SUCCESS")) == [ARRIVING]


def test_a_change_is_reported_once_and_so_is_its_return() -> None:
    each = [(0, seen(ONE)), (1, seen(TWO)), (2, seen(TWO)), (3, seen(ONE)), (4, seen(ONE))]
    assert looks(each, Settled(0)) == [TAKE, CHANGED, None, REVERTED, None]


def test_a_change_is_taken_again_when_it_has_settled() -> None:
    each = [(0, seen(ONE)), (50, seen(TWO)), (100, seen(TWO)), (150, seen(TWO)), (300, seen(ONE)), (500, seen(ONE))]
    wanted = [ARRIVING, ARRIVING, TAKE, (What.CHANGED, 2), (What.ARRIVING, 2), (What.TAKE, 2)]
    each = [(0, seen(ONE)), (50, seen(ONE)), (100, seen(ONE)), (150, seen(TWO)), (200, seen(TWO)), (250, seen(TWO))]
    assert looks(each, Settled(100), revises=True) == wanted


def test_a_change_that_is_undone_is_no_revision() -> None:
    each = [(0, seen(ONE)), (1, seen(TWO)), (2, seen(ONE)), (3, seen({"a": "9"})), (4, seen({"a": "9"}))]
    rule = Marked("_")
    each = [(now_s, seen(one.stamps, "_")) for now_s, one in each if one is not None]
    assert looks(each, rule, revises=True) == [TAKE, (What.CHANGED, 2), REVERTED, (What.CHANGED, 2), (What.TAKE, 2)]


def test_a_drop_is_gone_after_two_looks_and_said_to_be_so_once() -> None:
    each = [(0, seen(ONE)), (1, None), (2, seen(ONE)), (3, None), (4, None), (5, None), (6, seen(ONE))]
    assert looks(each, Settled(0)) == [TAKE, None, None, None, VANISHED, None, None]


def test_changes_are_told_apart() -> None:
    change = change_between({"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "1"})
    assert change == Change(late=("d",), rewritten=("b",), vanished=("c",))
    assert change.describe() == "1 late ('d'), 1 rewritten ('b'), 1 vanished ('c')"


FILES = st.none() | st.dictionaries(st.sampled_from("abc"), st.sampled_from("123"), max_size=3)


@given(st.lists(st.tuples(FILES, st.booleans()), max_size=30), st.booleans())
def test_each_content_is_taken_at_most_once_in_a_row(each: list, revises: bool) -> None:
    """Whatever happens to a drop: without revisions it is taken once, and a revision is another content."""
    known: Known | None = None
    taken: list[tuple[int, str]] = []
    for now_s, (files, marked) in enumerate(each):
        one = seen(files, *(["_"] if marked else []))
        known, finding = judge("d", known, one, now_s, Marked("_"), lambda name: b"", revises=revises)
        if finding is not None and finding.what is What.TAKE:
            assert one is not None
            assert marked
            taken.append((finding.revision, one.fingerprint))
    if not revises:
        assert len(taken) <= 1
    assert [revision for revision, _ in taken] == list(range(1, len(taken) + 1))
    assert all(one[1] != other[1] for one, other in itertools.pairwise(taken))

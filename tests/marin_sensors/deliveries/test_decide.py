"""What is decided about one delivery, look by look."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marin_sensors.deliveries.completeness import Completeness, DeliveryFiles, Manifested, Marked, Settled
from marin_sensors.deliveries.decide import DeliveryEvent, DeliveryState, decide
from marin_sensors.deliveries.delivery_listing import Change, DeliveryListing, change_between


def seen(files: Mapping[str, str] | None, *beside: str) -> DeliveryListing | None:
    return (
        None if files is None else DeliveryListing(name="d", stamps=files, bytes=0, beside=dict.fromkeys(beside, "0 1"))
    )


@dataclass(frozen=True)
class Files:
    """Files of a delivery whose manifest has this text, and which are all empty."""

    manifest: bytes = b""
    unread: frozenset[str] = frozenset()
    failing: frozenset[str] = frozenset()

    def read(self, name: str) -> bytes:
        return self.manifest

    def checksums(self, algorithms: Mapping[str, str], seen: DeliveryListing) -> Mapping[str, str | OSError]:
        return {
            name: OSError(13, "Permission denied") if name in self.failing else hashlib.new(algorithm).hexdigest()
            for name, algorithm in algorithms.items()
            if name not in self.unread
        }


def looks(
    each: Sequence[tuple[float, DeliveryListing | None]],
    rule: Completeness,
    *,
    revises: bool = False,
    files: DeliveryFiles = Files(),
) -> list[tuple[DeliveryEvent, int] | None]:
    known: DeliveryState | None = None
    found = []
    for now_s, one in each:
        known, finding = decide("d", known, one, now_s, rule, files, revises=revises)
        found.append((finding.event, finding.revision) if finding else None)
    return found


ONE, TWO = {"a": "1"}, {"a": "1", "b": "2"}
ARRIVING, TAKE, CHANGED, VANISHED, REVERTED = (
    (DeliveryEvent.ARRIVING, 1),
    (DeliveryEvent.TAKE, 1),
    (DeliveryEvent.CHANGED, 1),
    (DeliveryEvent.VANISHED, 1),
    (DeliveryEvent.REVERTED, 1),
)


def test_a_delivery_that_grows_is_taken_when_it_has_settled() -> None:
    each = [(0, seen(ONE)), (50, seen(TWO)), (105, seen(TWO)), (150, seen(TWO)), (999, seen(TWO))]
    assert looks(each, Settled(100)) == [ARRIVING, ARRIVING, ARRIVING, TAKE, None]


def test_a_clock_that_is_set_back_takes_nothing_early_and_loses_nothing() -> None:
    each = [(1000, seen(ONE)), (0, seen(ONE)), (99, seen(ONE)), (100, seen(ONE))]
    assert looks(each, Settled(100)) == [ARRIVING, ARRIVING, ARRIVING, TAKE]


def test_a_marked_delivery_is_taken_at_once() -> None:
    each = [(0, seen(ONE)), (1, seen(ONE, "_SUCCESS")), (2, seen(ONE, "_SUCCESS"))]
    assert looks(each, Marked("_SUCCESS")) == [ARRIVING, TAKE, None]


NONE = hashlib.sha256().hexdigest()
"""Of an empty file."""


@pytest.mark.parametrize(
    ("manifest", "lacks"),
    [
        (f"{NONE}  a\n{NONE} *b\n", ""),
        (f"{NONE.upper()}  a\r\n\n{hashlib.md5().hexdigest()}  ./b\r\n", ""),
        (f"{hashlib.sha512().hexdigest()}  a\n{hashlib.sha1().hexdigest()}  b", ""),
        (f"{NONE}  ./a\n{NONE}  c\n", "'SHA256SUMS' names 'c', which has not arrived"),
        (
            f"{NONE}  a\n{'1' * 64}  b\n",
            "'b' has another checksum than 'SHA256SUMS' names, so",
        ),
        (f"{'0' * 64}  a\n{'1' * 64}  b\n", "'a' and 1 more has another checksum than 'SHA256SUMS' names"),
        (f"{'0' * 64}  SHA256SUMS\n{NONE}  a\n{NONE}  b\n", ""),
        (f"{'0' * 64}  SHA256SUMS\n", "'SHA256SUMS' names no file"),
        (f"\\{NONE}  one\\ntwo\\\\\n", "'SHA256SUMS' names 'one\\ntwo\\\\', which has not arrived"),
        (f"{NONE[:50]}  a\n", "has the line"),
        (f"SHA256 (a) = {NONE}\n", "has the line"),
        ("a\n", "'SHA256SUMS' has the line 'a', expected '<checksum>  <file>'"),
        ("", "'SHA256SUMS' names no file"),
    ],
)
def test_a_delivery_with_a_manifest_is_taken_when_all_that_it_names_is_there_whole(manifest: str, lacks: str) -> None:
    one = seen(TWO, "SHA256SUMS")
    assert one is not None
    found = Manifested("SHA256SUMS").lacks(one, 0, Files(manifest.encode()))
    assert found.startswith(lacks) if lacks and "has the line" not in lacks else lacks in found
    assert bool(found) == bool(lacks)


def test_what_is_still_read_and_what_cannot_be_is_said() -> None:
    one, manifest = seen(TWO, "SHA256SUMS"), f"{NONE}  a\n{NONE}  b\n".encode()
    assert one is not None
    rule = Manifested("SHA256SUMS")
    left = rule.lacks(one, 0, Files(manifest, unread=frozenset("b")))
    assert left == "1 of 2 files are compared with 'SHA256SUMS' so far"
    assert rule.lacks(one, 0, Files(manifest, failing=frozenset("b"))) == "'b' could not be read (Permission denied)"


def test_a_delivery_with_what_cannot_be_read_is_neither_taken_nor_said_to_have_changed() -> None:
    bad = DeliveryListing(name="d", stamps=ONE, bytes=0, unusable="'pipe' is a FIFO")
    each = [(0, bad), (1, bad), (2, seen(TWO)), (3, bad), (4, seen(TWO)), (5, None), (6, bad), (7, None)]
    unreadable = (DeliveryEvent.UNREADABLE, 1)
    assert looks(each, Settled(0)) == [unreadable, unreadable, TAKE, unreadable, None, None, unreadable, None]


def test_a_delivery_without_a_wanted_file_is_not_taken() -> None:
    assert looks([(0, seen({}, "_SUCCESS"))], Marked("_SUCCESS")) == [ARRIVING]


def test_a_change_is_reported_once_and_so_is_its_return() -> None:
    each = [(0, seen(ONE)), (1, seen(TWO)), (2, seen(TWO)), (3, seen(ONE)), (4, seen(ONE))]
    assert looks(each, Settled(0)) == [TAKE, CHANGED, None, REVERTED, None]


def test_a_change_is_taken_again_when_it_has_settled() -> None:
    each = [(0, seen(ONE)), (50, seen(TWO)), (100, seen(TWO)), (150, seen(TWO)), (300, seen(ONE)), (500, seen(ONE))]
    wanted = [
        ARRIVING,
        ARRIVING,
        TAKE,
        (DeliveryEvent.CHANGED, 2),
        (DeliveryEvent.ARRIVING, 2),
        (DeliveryEvent.TAKE, 2),
    ]
    each = [(0, seen(ONE)), (50, seen(ONE)), (100, seen(ONE)), (150, seen(TWO)), (200, seen(TWO)), (250, seen(TWO))]
    assert looks(each, Settled(100), revises=True) == wanted


def test_a_change_that_is_undone_is_no_revision() -> None:
    each = [(0, seen(ONE)), (1, seen(TWO)), (2, seen(ONE)), (3, seen({"a": "9"})), (4, seen({"a": "9"}))]
    rule = Marked("_")
    each = [(now_s, seen(one.stamps, "_")) for now_s, one in each if one is not None]
    assert looks(each, rule, revises=True) == [
        TAKE,
        (DeliveryEvent.CHANGED, 2),
        REVERTED,
        (DeliveryEvent.CHANGED, 2),
        (DeliveryEvent.TAKE, 2),
    ]


def test_a_delivery_is_gone_after_two_looks_and_said_to_be_so_once() -> None:
    each = [(0, seen(ONE)), (1, None), (2, seen(ONE)), (3, None), (4, None), (5, None), (6, seen(ONE))]
    assert looks(each, Settled(0)) == [TAKE, None, None, None, VANISHED, None, None]


def test_changes_are_told_apart() -> None:
    change = change_between({"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "1"})
    assert change == Change(late=("d",), rewritten=("b",), vanished=("c",))
    assert change.describe() == "1 late ('d'), 1 rewritten ('b'), 1 vanished ('c')"


FILES = st.none() | st.dictionaries(st.sampled_from("abc"), st.sampled_from("123"), max_size=3)


@given(st.lists(st.tuples(FILES, st.booleans()), max_size=30), st.booleans())
def test_each_content_is_taken_at_most_once_in_a_row(each: list, revises: bool) -> None:
    """Whatever happens to a delivery: without revisions it is taken once, and a revision is another content."""
    known: DeliveryState | None = None
    taken: list[tuple[int, str]] = []
    for now_s, (files, marked) in enumerate(each):
        one = seen(files, *(["_"] if marked else []))
        known, finding = decide("d", known, one, now_s, Marked("_"), Files(), revises=revises)
        if finding is not None and finding.event is DeliveryEvent.TAKE:
            assert one is not None
            assert marked
            taken.append((finding.revision, one.fingerprint))
    if not revises:
        assert len(taken) <= 1
    assert [revision for revision, _ in taken] == list(range(1, len(taken) + 1))
    assert all(one[1] != other[1] for one, other in itertools.pairwise(taken))

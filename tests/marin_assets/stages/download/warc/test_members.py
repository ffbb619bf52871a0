"""Records of gzip files: exact borders, and damage that costs one record."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import pytest
from warc_files import crawl_records, member, members, page_records, warc_record, with_length

from marin_assets.stages.download.warc import members as members_module
from marin_assets.stages.download.warc.members import _exact, gzip_records, next_member
from marin_assets.stages.download.warc.record import Damage, Record

PAGE = page_records("keyword")
GOOD_KINDS = ["request", "response", "metadata"]
GOOD = [*PAGE, *page_records("abc"), *page_records("copy")]


class Bytes:
    def __init__(self, content: bytes) -> None:
        self.content, self.size_bytes = content, len(content)

    def read_at(self, offset: int, size: int) -> bytes:
        return self.content[offset : offset + size]


def items_of(content: bytes, start: int = 0) -> list[tuple[int, str]]:
    """Offset and WARC-Type of each record, or offset and reason of damage."""
    items = gzip_records(Bytes(content), start)
    return [(item.offset, item.kind if isinstance(item, Record) else item.reason) for item in items]


def kinds(content: bytes) -> list[str]:
    return [kind for _, kind in items_of(content)]


def test_each_record_has_the_offset_of_its_member_and_its_block() -> None:
    content = members(GOOD)
    records = list(gzip_records(Bytes(content), 0))
    offset = 0
    for record, expected in zip(records, GOOD, strict=True):
        assert isinstance(record, Record)
        assert record.offset == offset
        assert record.block == expected.partition(b"\r\n\r\n")[2][:-4]
        offset += len(member(expected))


def damaged(at: int) -> bytes:
    broken = bytearray(member(PAGE[1]))
    broken[at] ^= 1
    return bytes(broken)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (damaged(0), "damaged_record"),  # the magic
        (damaged(500), "damaged_record"),
        (damaged(-7), "damaged_record"),  # the checksum
        (damaged(-2), "damaged_record"),  # the size
        (member(with_length(PAGE[1], lambda size: size + 50)), "wrong_length"),
        (member(with_length(PAGE[1], lambda size: size - 50)), "wrong_length"),
        (member(with_length(PAGE[1], lambda _: 10**17)), "wrong_length"),
        (member(with_length(PAGE[1], lambda _: -5)), "no_warc_header"),
        (member(PAGE[1].replace(b"Content-Length", b"Content-Size", 1)), "no_warc_header"),
        (member(PAGE[1].replace(b"\r\n", b"\n")), "wrong_length"),
        (member(b"<html>no record</html>"), "no_warc_header"),
        (member(PAGE[1][:100]), "no_warc_header"),
        (member(b"WARC/1.0\r\n" + b"X: " + b"y" * 2**21), "no_warc_header"),
        (b"\0" * 1000, "damaged_record"),
        (b"some text", "damaged_record"),
    ],
)
def test_a_damaged_member_costs_one_record(second: bytes, reason: str) -> None:
    content = member(PAGE[0]) + second + members(PAGE[2:])
    first = len(member(PAGE[0]))
    assert items_of(content) == [(0, "request"), (first, reason), (first + len(second), "metadata")]


def test_headers_with_bare_line_feeds_are_headers() -> None:
    record = PAGE[1].replace(b"\r\n", b"\n", 8)
    assert kinds(members([PAGE[0], record, PAGE[2]])) == ["request", "response", "metadata"]


def test_the_end_of_a_file_that_was_cut_is_damage() -> None:
    content = members(PAGE)
    last = len(content) - len(member(PAGE[2]))
    for size in range(last + 1, len(content)):
        assert items_of(content[:size])[2] in ((last, "cut_record"), (last, "damaged_record")), size
        assert len(items_of(content[:size])) == 3
    assert items_of(content[:last]) == items_of(content)[:2], "the end of a member does not show a cut"


def test_zeros_and_text_after_the_last_record_are_damage() -> None:
    for rest in (b"\0" * 512, b"text", b"\x1f\x8b\x08"):
        assert kinds(members(PAGE) + rest)[:3] == ["request", "response", "metadata"]
        assert kinds(members(PAGE) + rest)[3] in ("damaged_record", "cut_record")
        assert len(kinds(members(PAGE) + rest)) == 4


def test_all_records_in_one_member_are_read() -> None:
    content = gzip.compress(b"".join(GOOD))
    assert kinds(content) == ["request", "response", "metadata"] * 3
    assert {offset for offset, _ in items_of(content)} == {0}
    assert kinds(content[:-9])[-1] == "cut_record"
    assert len(kinds(content[:-9])) == 9


def test_a_block_above_the_limit_is_not_held_and_costs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members_module, "MAX_BLOCK_BYTES", 100_000)
    huge = warc_record("response", b"\0" * 100_001)
    records = list(gzip_records(Bytes(member(huge) + member(PAGE[2])), 0))
    assert [record.block is None for record in records if isinstance(record, Record)] == [True, False]


def bomb(head: bytes, repeated: bytes, times: int) -> Callable[[], bytes]:
    """A gzip member of some kilobytes that inflates to many megabytes, made when a test asks."""

    def make() -> bytes:
        deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
        parts = [deflate.compress(head), *(deflate.compress(repeated * 2**20) for _ in range(times)), deflate.flush()]
        return b"".join(parts)

    return make


@pytest.mark.parametrize(
    ("content", "kinds_within"),
    [
        (bomb(b"", b"\0", 100), ["no_warc_header"]),
        (bomb(b"", b"\r\n", 8), []),
        (bomb(b"WARC/1.0\r\nX: ", b"y", 100), ["no_warc_header"]),
        (bomb(b"WARC/1.0\r\nContent-Length: 5\r\n\r\nhello", b"y", 100), ["wrong_length"]),
        (bomb(b"WARC/1.0\r\nContent-Length: %d\r\n\r\n" % (100 * 2**20), b"y", 100), [""]),
        (lambda: gzip.compress(b"") * 10_000, []),
        (lambda: b"\x1f\x8b\x08" * 10_000, ["damaged_record"]),
    ],
    ids=["zeros", "blanks", "headers", "rest", "block", "empty", "magic"],
)
def test_a_bomb_is_read_in_bounded_memory_and_costs_itself_alone(
    content: Callable[[], bytes], kinds_within: list[str]
) -> None:
    between = content()
    tracemalloc.start()
    try:
        assert kinds(members(PAGE) + between + members(PAGE)) == [*GOOD_KINDS, *kinds_within, *GOOD_KINDS]
        assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
    finally:
        tracemalloc.stop()


def test_any_offset_is_an_entry() -> None:
    content = members(GOOD)
    expected = items_of(content)
    draw = random.Random(4)
    for start in [0, 1, len(content) - 1, *(draw.randrange(len(content)) for _ in range(60))]:
        assert items_of(content, start) == [item for item in expected if item[0] >= start]
        assert next_member(Bytes(content), start) == next((at for at, _ in expected if at >= start), None)


def exact(content: bytes) -> Iterator[Record | Damage]:
    """All records by zlib alone."""
    offset: int | None = 0
    while offset is not None and offset < len(content):
        offset = yield from _exact(Bytes(content), offset)


def comparable(item: Record | Damage) -> tuple[object, ...]:
    return (item.offset, item.reason) if isinstance(item, Damage) else (item.offset, item.kind, item.block)


def test_both_readers_agree_on_mutated_files() -> None:
    draw = random.Random(5)
    small = [record[:1200] if b"response" in record[:30] else record for record in GOOD[:6]]
    small[1] = with_length(GOOD[1][:1200], lambda _: 1200 - GOOD[1].index(b"\r\n\r\n") - 8)
    inserts = [b"WARC/1.0\r\n", b"\r\n\r\n", b"\r\n", b"A: b\r\n", b"\0", b"\xff", b"Content-Length: 5\r\n"]
    for number in range(1500):
        records = list(small)
        changed = bytearray(records[number % 6])
        for _ in range(draw.randrange(3)):
            at = draw.randrange(300)
            changed[at : at + draw.choice((0, 0, 1, 40))] = draw.choice([b"", *inserts])
        records[number % 6] = bytes(changed)
        content = bytearray(members(records[:2]) + gzip.compress(b"".join(records[2:4])) + members(records[4:]))
        if number % 3 == 0:
            at = draw.randrange(len(content))
            content[at : at + draw.choice((1, 100))] = draw.choice((b"", b"?"))
        both = [[*map(comparable, items)] for items in (gzip_records(Bytes(bytes(content)), 0), exact(bytes(content)))]
        assert both[0] == both[1], number


@pytest.mark.long
def test_ten_thousand_mutated_files_end_and_lose_no_other_record() -> None:
    draw = random.Random(6)
    good = crawl_records(["keyword", "abc", "copy", "glob"])
    content = members(good)
    offsets = [offset for offset, _ in items_of(content)]
    for _ in range(10_000):
        changed, at = bytearray(content), draw.randrange(len(content))
        changed[at] ^= 1 << draw.randrange(8)
        items = items_of(bytes(changed))
        within = max(offset for offset in offsets if offset <= at)
        assert [item for item in items if item[0] != within] == [i for i in items_of(content) if i[0] != within]

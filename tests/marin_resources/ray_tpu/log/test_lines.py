"""Printed bytes become whole lines; a progress bar leaves a state every 10 s and the last one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marin_resources.ray_tpu.log.lines import MAX_LINE_BYTES, Lines


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("one\ntwo\n", "one\ntwo\n"),
        ("one\r\n\r\ntwo\r\n", "one\n\ntwo\n"),
        ("\r 0%\r 50%\r 100%\ndone\n", " 100%\ndone\n"),
        ("0%\r50%\r100%\r\ndone", "100%\ndone\n"),
        ("50%\r", "50%\n"),
        ("a\u2028b\x0bc\x85d\n", "a\u2028b\x0bc\x85d\n"),
    ],
)
def test_lines_are_kept_as_a_terminal_would_show_them(printed: str, kept: str) -> None:
    lines = Lines()
    assert (lines.feed(printed.encode(), 0.0) + lines.flush()).decode() == kept


def test_what_is_not_utf8_is_replaced() -> None:
    assert Lines().feed(b"\xff\xc3\xbc\xed\xa0\x80\xc3\n", 0.0).decode() == "\ufffdü" + "\ufffd" * 4 + "\n"


def test_a_progress_bar_is_shown_every_10_seconds_and_at_its_end() -> None:
    lines, kept = Lines(), b""
    for second in range(36):
        kept += lines.feed(f"\r{second} s".encode(), second) + lines.due(second)
    assert kept == b"10 s\n21 s\n32 s\n"
    assert lines.feed(b"\r36 s\n", 36.0) == b"36 s\n"


def test_a_bar_that_ends_with_what_was_shown_last_is_not_shown_twice() -> None:
    lines = Lines()
    assert lines.feed(b"100%\r", 0.0) + lines.due(10.0) + lines.feed(b"\nnext\n", 11.0) == b"100%\nnext\n"


def test_a_prompt_is_shown_after_10_seconds_and_what_follows_is_a_line_of_its_own() -> None:
    lines = Lines()
    assert lines.feed(b"one\nloading\xe2\x80", 0.0) == b"one\n"
    assert lines.due_in_s(4.0) == 6.0
    assert lines.due(9.9) == b""
    assert lines.due(10.0) == b"loading\n"
    assert lines.due_in_s(10.0) is None
    assert lines.feed(b"\xa6 done\n", 60.0) == "… done\n".encode()


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    lines = Lines()
    kept = b"".join(lines.feed(b"x" * 65536, 0.0) for _ in range(64))
    assert [len(line) for line in kept.splitlines()] == [MAX_LINE_BYTES] * 4


@given(st.text(alphabet="aü\n\r ", max_size=60), st.data())
def test_where_the_bytes_are_cut_makes_no_difference(printed: str, data: st.DataObject) -> None:
    whole, lines, rest, kept = Lines(), Lines(), printed.encode(), b""
    expected = whole.feed(rest, 0.0) + whole.flush()
    while rest:
        cut = data.draw(st.integers(1, 9))
        kept += lines.feed(rest[:cut], 0.0)
        rest = rest[cut:]
    assert kept + lines.flush() == expected

"""Versioned JSON: a file that is damaged or newer is refused in one sentence with its path."""

from __future__ import annotations

import pytest

from marin_resources.versioned_json import VersionedJson


class NoteError(ValueError):
    """Of the files in these tests."""


NOTE = VersionedJson(kind="note", newest=2, error=NoteError)


def test_a_known_version_is_read() -> None:
    assert NOTE.parse(b'{"format_version": 1, "a": 3}', "x") == {"format_version": 1, "a": 3}


def test_a_newer_version_is_refused_with_the_path_and_what_to_do() -> None:
    with pytest.raises(NoteError, match=r"^The note 'x' has format version 3 and this software knows up to 2\. Update"):
        NOTE.parse('{"format_version": 3}', "x")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"{}", "has the format_version None"),
        (b'{"format_version": "1"}', "has the format_version '1'"),
    ],
)
def test_a_damaged_file_is_refused_with_its_path(text: bytes, problem: str) -> None:
    with pytest.raises(NoteError, match=rf"^The note 'x' {problem}.*move it aside if it is damaged\.$"):
        NOTE.parse(text, "x")


def test_a_file_without_a_version_has_the_default_one() -> None:
    assert VersionedJson(kind="record", newest=1, error=NoteError, default=0).parse("{}", "x") == {}

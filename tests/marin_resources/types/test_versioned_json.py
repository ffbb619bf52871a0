"""Versioned JSON: a file that is damaged or newer is refused in one sentence with its path."""

from __future__ import annotations

import pytest

from marin_resources.types.versioned_json import ANY, Required, VersionedJson, is_deeper, misfit


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
        (b'{"format_version": true}', "has the format_version True"),
        (b'{"format_version": 0}', "has the format_version 0"),
        (b'{"format_version": 1, "a": ' + b"[" * 100_000, "is nested more than 150 levels deep"),
        (b'{"format_version": 1, "a": ' + b"[" * 400 + b"]" * 400 + b"}", "is nested more than 150 levels deep"),
        (b"1" * 5000, "is not JSON"),
    ],
)
def test_a_damaged_file_is_refused_with_its_path(text: bytes, problem: str) -> None:
    with pytest.raises(NoteError, match=rf"^The note 'x' {problem}.*move it aside if it is damaged\.$"):
        NOTE.parse(text, "x")


def test_a_file_without_a_version_has_the_default_one() -> None:
    assert VersionedJson(kind="record", newest=1, error=NoteError, default=0).parse("{}", "x") == {}


SHAPE = {"name": str, "sizes": [int], "manifest": {"digest": Required(str), "share": float}, "inputs": {ANY: str}}


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, ""),
        ({"name": None, "other": object()}, ""),
        ({"sizes": [1, None], "manifest": {"digest": "x", "share": 1}, "inputs": {"a": None, "b": "x"}}, ""),
        ({"name": 3}, "the field 'name' as 3, expected a text"),
        ({"sizes": "12"}, "the field 'sizes' as '12', expected a list"),
        ({"sizes": [1, "2"]}, "the field 'sizes.[1]' as '2', expected a whole number"),
        ({"sizes": [True]}, "the field 'sizes.[0]' as True, expected a whole number"),
        ({"manifest": []}, "the field 'manifest' as a list, expected an object"),
        ({"manifest": {}}, "no field 'manifest.digest'"),
        ({"manifest": {"digest": "x", "share": "1"}}, "the field 'manifest.share' as '1', expected a number"),
        ({"inputs": {"a": {}}}, "the field 'inputs.a' as a dict, expected a text"),
        ({"name": ["x" * 500]}, "the field 'name' as a list, expected a text"),
    ],
)
def test_the_first_field_of_another_type_is_named(fields: dict[str, object], wrong: str) -> None:
    assert misfit(fields, SHAPE) == wrong


def test_a_file_of_another_shape_is_refused_with_its_path() -> None:
    kind = VersionedJson(kind="note", newest=2, error=NoteError, shape=SHAPE)
    with pytest.raises(NoteError, match=r"^The note 'x' has the field 'name' as 5, expected a text\. Look at the file"):
        kind.parse('{"format_version": 1, "name": 5}', "x")


def test_depth_is_measured_without_recursion() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert is_deeper(deep, 150)
    assert not is_deeper({"a": [1, {"b": ()}]}, 4)
    assert is_deeper({"a": [1, {"b": ()}]}, 3)

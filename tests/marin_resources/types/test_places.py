"""Two spellings of one folder are one place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from marin_resources.types.places import is_same, is_within, place_of, relative_to


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "p"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


SPELLINGS = (
    "{tmp}/p/raw/x",
    "{tmp}/p/raw/x/",
    "{tmp}/link/raw/x",
    "{tmp}/p/../p/raw/x",
    "{tmp}/p/./raw/x",
    "{tmp}//p//raw//x",
    "/{tmp}/p/raw/x",
    "file://{tmp}/p/raw/x",
    "FILE://{tmp}/link/raw/x/",
    "~/p/raw/x",
)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_spelling_of_a_folder_on_a_disk_is_the_folder(folder: Path, spelling: str) -> None:
    path = spelling.format(tmp=folder.parent)
    for prefix in (str(folder), str(folder.parent / "link"), f"file://{folder}/"):
        assert (relative_to(path, [prefix]) or "").rstrip("/") == "raw/x"
        assert is_within(path, prefix)
        assert not is_within(prefix, path)
    assert is_same(path, str(folder / "raw" / "x"))
    assert relative_to(path, [str(folder.parent / "q")]) is None


def test_a_neighbour_with_a_longer_name_is_not_inside(folder: Path) -> None:
    assert relative_to(f"{folder}2/raw/x", [str(folder)]) is None
    assert relative_to(f"{folder}/../q/x", [str(folder)]) is None
    assert relative_to("gs://bucket/p2/x", ["gs://bucket/p"]) is None


def test_a_relative_path_is_in_no_folder_but_is_a_place_below_the_working_folder(folder: Path) -> None:
    assert relative_to("p/raw/x", [str(folder)]) is None
    assert place_of("link/raw/x") == os.path.join(os.path.realpath(folder), "raw/x")


@pytest.mark.parametrize("spelling", ["gs://bucket/p/x", "GS://bucket/p/x", "gcs://bucket/p/x/"])
def test_schemes_of_one_store_and_their_case_are_one_place_in_a_bucket(spelling: str) -> None:
    assert is_same(spelling, "gs://bucket/p/x")
    assert (relative_to(spelling, ["gs://bucket/p"]) or "").rstrip("/") == "x"
    assert relative_to(spelling, ["s3://bucket/p"]) is None


def test_dots_and_doubled_slashes_are_letters_of_a_name_in_a_bucket() -> None:
    assert relative_to("gs://bucket/q/../p/x", ["gs://bucket/p"]) is None
    assert relative_to("gs://bucket/p//x", ["gs://bucket/p"]) == "/x"

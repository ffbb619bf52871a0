from __future__ import annotations

import json
from pathlib import Path

import pytest

from marin_resources.storage.manifest import NAME, Manifest, read_manifest, take_manifest, write_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in {"b.txt": "bb", "a/x.txt": "", "a/y.txt": "yyy", "ünï code.txt": "u"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(data)
    for name in (".executor_status", ".executor_info", ".marin/attempts/1.log", "a/.hidden", ".cache/z"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("control")
    return tmp_path


def test_a_manifest_lists_data_files_by_name_and_leaves_control_files_out(folder: Path) -> None:
    taken = take_manifest(str(folder))
    assert taken.files == (("a/x.txt", 0), ("a/y.txt", 3), ("b.txt", 2), ("ünï code.txt", 1))
    assert (taken.bytes, taken.summary()["files"]) == (6, 4)


def test_a_trailing_slash_changes_nothing(folder: Path) -> None:
    assert take_manifest(f"{folder}/") == take_manifest(str(folder))


def test_a_manifest_comes_back_as_it_was_written(folder: Path) -> None:
    taken = take_manifest(str(folder))
    write_manifest(str(folder), taken)
    assert read_manifest(str(folder)) == taken == take_manifest(str(folder))
    assert json.loads((folder / NAME).read_text())["digest"] == taken.digest


def test_the_digest_covers_names_and_sizes_and_not_the_place(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "b.txt").write_text("BB")
    assert take_manifest(str(elsewhere)).digest == Manifest(files=(("b.txt", 2),)).digest
    assert Manifest(files=(("b.txt", 3),)).digest != Manifest(files=(("b.txt", 2),)).digest
    assert Manifest(files=(("c.txt", 2),)).digest != Manifest(files=(("b.txt", 2),)).digest


def test_an_output_of_marins_has_no_manifest(tmp_path: Path) -> None:
    assert read_manifest(str(tmp_path)) is None


def test_an_empty_output_has_an_empty_manifest(tmp_path: Path) -> None:
    assert take_manifest(str(tmp_path)).files == ()

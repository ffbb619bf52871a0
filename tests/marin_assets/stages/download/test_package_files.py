"""Files of a package are copied as the package records them, and nothing else is taken for them."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from marin_assets.stages.download.package_files import PackageFilesConfig, PackageFilesError, copy_package_files
from marin_assets.step.values import unwrap_versioned_value

VERSION = importlib.metadata.version("dagster")


def copied(output: Path, package: str = f"dagster=={VERSION}", folder: str = "dagster/_config") -> dict[str, int]:
    return copy_package_files(
        unwrap_versioned_value(PackageFilesConfig(package=package, folder=folder, output_path=str(output)))
    )


def test_the_files_of_a_folder_are_those_of_the_package(tmp_path: Path) -> None:
    counts = copied(tmp_path)
    source = Path(str(importlib.metadata.distribution("dagster").locate_file("dagster/_config")))
    files = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*.py")}
    assert files == {path.relative_to(source).as_posix(): path.read_bytes() for path in source.rglob("*.py")}
    assert counts == {"files": len(files), "bytes": sum(map(len, files.values()))}


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package of which one file was changed after its installation."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights").write_bytes(b"changed")
    about = tmp_path / "damaged_model-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: damaged-model\nVersion: 1.0\n")
    (about / "RECORD").write_text("model/weights,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.mark.usefixtures("damaged")
def test_a_file_that_was_changed_is_not_copied(tmp_path: Path) -> None:
    with pytest.raises(PackageFilesError, match=r"'model/weights' is not the file that its package records"):
        copied(tmp_path / "out", "damaged-model==1.0", "model")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("package", "folder", "sentence"),
    [
        ("dagster", "dagster", r"package is 'dagster', expected one version of it"),
        ("dagster>=1", "dagster", r"expected one version of it"),
        ("dagster==0.1", "dagster", rf"dagster is installed in version {VERSION}, expected 0\.1"),
        ("no-such-package==1.0", "x", r"packages=\('no-such-package==1\.0',\)"),
        (f"dagster=={VERSION}", "dagster/nothing", r"has no files below 'dagster/nothing'"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, package: str, folder: str, sentence: str) -> None:
    with pytest.raises(PackageFilesError, match=sentence):
        copied(tmp_path, package, folder)

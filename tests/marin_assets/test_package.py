"""The distribution: its version, and its marker for type checkers."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

import marin_assets

ROOT = Path(__file__).parents[2]


def test_the_version_is_that_of_the_distribution() -> None:
    assert marin_assets.__version__ == importlib.metadata.version("marin-dagster")


def test_any_other_name_that_is_missing_is_an_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'zzz'"):
        marin_assets.zzz  # noqa: B018  # type: ignore[attr-defined]


def test_without_the_distribution_the_version_is_missing_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_not_found(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", raise_not_found)
    with pytest.raises(AttributeError, match="'marin-dagster' is not installed"):
        marin_assets.__version__  # noqa: B018
    assert not hasattr(marin_assets, "__version__")


@pytest.mark.parametrize("package", ["marin_assets", "marin_resources", "marin_sensors"])
def test_the_package_is_marked_as_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()

"""Every test of settings begins with none, and leaves none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from marin_resources.configuration.file import load_file
from marin_resources.configuration.table import SETTINGS


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for setting in SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    monkeypatch.setenv("MARIN_CONFIG", "")
    yield
    monkeypatch.setenv("MARIN_CONFIG", "")
    load_file()

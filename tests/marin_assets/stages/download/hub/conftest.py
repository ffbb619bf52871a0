"""A hub on loopback, whose address and token are in the environment, and faults that are tried again at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dataset_hub import DatasetHub, dataset_hub
from hub_downloads import FILES, NAME

from marin_assets.stages.download.web import faults


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[DatasetHub]:
    monkeypatch.setattr(faults, "FIRST_WAIT_S", 0.001)
    for name in ("HF_TOKEN", "HF_TOKEN_PATH", "XDG_CACHE_HOME", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "huggingface"))
    with dataset_hub() as hub:
        hub.add(NAME, FILES)
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"

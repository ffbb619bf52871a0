"""A server of files on loopback, and faults that are tried again at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_server import CrawlServer, crawl_server

from marin_assets.stages.download.web import faults


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards run in this process, although other tests may have started Ray in it."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
    monkeypatch.setattr(faults, "FIRST_WAIT_S", 0.001)


@pytest.fixture
def server() -> Iterator[CrawlServer]:
    with crawl_server() as server:
        yield server


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"

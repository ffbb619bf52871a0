"""Crawls in a folder, read in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import Read, reader

from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
from marin_assets.stages.download.crawl.read_wet import ReadWetConfig, read_wet


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a crawl as pages; each call has an output of its own."""
    return reader(tmp_path, read_warc, ReadWarcConfig, of="records", kept="pages", source="crawl")


@pytest.fixture
def read_texts(tmp_path: Path) -> Read:
    """Read WET files as documents; each call has an output of its own."""
    return reader(tmp_path, read_wet, ReadWetConfig, of="records", kept="documents", source="crawl")

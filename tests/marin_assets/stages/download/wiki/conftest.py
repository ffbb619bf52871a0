"""Dumps in a folder, read in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import Read, reader

from marin_assets.stages.download.wiki.read_wiki_html import ReadWikiHtmlConfig, read_wiki_html


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read dumps as pages; each call has an output of its own."""
    return reader(tmp_path, read_wiki_html, ReadWikiHtmlConfig, of="articles", kept="pages", source="wiki")

"""A server of files on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crawl_server import CrawlServer, crawl_server

from marin_assets.stages.download.web import faults


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CrawlServer]:
    """A server, and faults that are tried again at once."""
    monkeypatch.setattr(faults, "FIRST_WAIT_S", 0.001)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with crawl_server() as server:
        yield server

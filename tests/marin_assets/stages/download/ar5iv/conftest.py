"""Archives of papers, read in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_server import CrawlServer, crawl_server
from crawls import Read, documents_of, reasons

from marin_assets.documents import Document
from marin_assets.stages.download.ar5iv.read_ar5iv import ReadAr5ivConfig, read_ar5iv
from marin_assets.stages.download.web import faults
from marin_assets.step.values import unwrap_versioned_value


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read archives as pages; each call has an output of its own."""
    numbers = iter(range(1000))

    def run(source: Path | str, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
        output = tmp_path / f"pages{next(numbers)}"
        config = ReadAr5ivConfig(**{"input_path": str(source), "output_path": str(output), "source": "ar5iv", **fields})
        counts = read_ar5iv(unwrap_versioned_value(config))
        assert counts["members"] == counts["pages"] + counts["rejected"]
        assert counts["rejected"] == sum(reasons(counts).values())
        pages = documents_of(output)
        assert len(pages) == counts["pages"]
        assert sum(len(page.text.encode()) for page in pages) == counts["bytes"]
        return counts, pages

    return run


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CrawlServer]:
    """A server of archives, and faults that are tried again at once."""
    monkeypatch.setattr(faults, "FIRST_WAIT_S", 0.001)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with crawl_server() as server:
        yield server

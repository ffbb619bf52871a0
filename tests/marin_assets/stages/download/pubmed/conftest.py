"""Files of PubMed and PMC in a folder, read in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_server import CrawlServer, crawl_server
from crawls import Read, documents_of, reasons
from pubmed_files import Write

from marin_assets.documents import Document
from marin_assets.stages.download.pubmed.read_pmc import ReadPmcConfig, read_pmc
from marin_assets.stages.download.pubmed.read_pubmed import ReadPubmedConfig, read_pubmed
from marin_assets.stages.download.web import faults
from marin_assets.step.values import unwrap_versioned_value


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write files of a folder, and return it."""

    def run(files: dict[str, bytes], folder: str = "in") -> Path:
        for name, content in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return tmp_path / folder

    return run


def reader(tmp_path: Path, stage: Any, config: Any, texts: str) -> Read:
    numbers = iter(range(1000))

    def run(place: Path | str, /, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
        output = tmp_path / f"documents{next(numbers)}"
        counts = stage(unwrap_versioned_value(config(input_path=str(place), output_path=str(output), **fields)))
        assert counts[texts] == counts["documents"] + counts["rejected"]
        assert counts["rejected"] == sum(reasons(counts).values())
        assert not (output / ".marin/pubmed").exists()
        documents = documents_of(output)
        assert len(documents) == counts["documents"]
        assert sum(len(document.text.encode()) for document in documents) == counts["bytes"]
        return counts, documents

    return run


@pytest.fixture
def citations(tmp_path: Path) -> Read:
    """Read files of PubMed; each call has an output of its own."""
    return reader(tmp_path, read_pubmed, ReadPubmedConfig, "citations")


@pytest.fixture
def articles(tmp_path: Path) -> Read:
    """Read archives of PMC; each call has an output of its own."""
    return reader(tmp_path, read_pmc, ReadPmcConfig, "articles")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CrawlServer]:
    """A server of files, and faults that are tried again at once."""
    monkeypatch.setattr(faults, "FIRST_WAIT_S", 0.001)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with crawl_server() as server:
        yield server

"""Files of PubMed and PMC in a folder, read in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls import Read, reader
from pubmed_files import Write

from marin_assets.stages.download.pubmed.read_pmc import ReadPmcConfig, read_pmc
from marin_assets.stages.download.pubmed.read_pubmed import ReadPubmedConfig, read_pubmed


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


@pytest.fixture
def citations(tmp_path: Path) -> Read:
    """Read files of PubMed; each call has an output of its own."""
    return reader(tmp_path, read_pubmed, ReadPubmedConfig, of="citations", kept="documents")


@pytest.fixture
def articles(tmp_path: Path) -> Read:
    """Read archives of PMC; each call has an output of its own."""
    return reader(tmp_path, read_pmc, ReadPmcConfig, of="articles", kept="documents")

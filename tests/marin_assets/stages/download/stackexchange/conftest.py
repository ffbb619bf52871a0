"""Dumps in a folder, read in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crawls import Read, reader

from marin_assets.documents import Document
from marin_assets.stages.download.stackexchange.read_stackexchange import ReadStackexchangeConfig, read_stackexchange


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read dumps as pages; each call has an output of its own."""
    read = reader(
        tmp_path,
        read_stackexchange,
        ReadStackexchangeConfig,
        of="posts",
        kept="posts_kept",
        texts="pages",
        source="stack",
    )

    def run(source: Path | str, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
        counts, pages = read(source, **fields)
        assert sum(1 + len(page.metadata["answers"]) for page in pages) == counts["posts_kept"]
        return counts, pages

    return run

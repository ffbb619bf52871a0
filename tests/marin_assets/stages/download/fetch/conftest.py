"""Crawls of a web on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback_web import LoopbackWeb, loopback_web

from marin_assets.documents import list_shards, read_rows
from marin_assets.stages.download.fetch.fetch_pages import FetchPagesConfig, fetch_pages
from marin_assets.step.values import unwrap_versioned_value

Crawl = Callable[..., tuple[dict[str, Any], dict[str, dict[str, Any]]]]
CONTACT = "https://owls.example.org/bot"


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


@pytest.fixture
def web() -> Iterator[LoopbackWeb]:
    with loopback_web() as web:
        yield web


@pytest.fixture
def crawl(web: LoopbackWeb, tmp_path: Path) -> Crawl:
    """Crawl addresses of the web; each call has an output of its own. Returns the counts, and each outcome by
    address."""
    numbers = iter(range(100))

    def run(*urls: str, **fields: Any) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        output = tmp_path / f"crawl{next(numbers)}"
        counts = fetch_pages(config_of(web, output, urls, **fields))
        rows = outcomes_of(output)
        assert counts["rows"] == counts["urls"] + counts["rows_rejected"]
        assert counts["urls"] == len(rows)
        assert counts["urls_unaccounted"] == 0
        assert counts["urls"] == sum(n for name, n in counts.items() if name.startswith("outcome_"))
        return counts, rows

    return run


@pytest.fixture
def crawl_fields(web: LoopbackWeb) -> Callable[..., dict[str, Any]]:
    """The fields of a crawl of the web, for a process of its own."""
    return lambda output, urls, **fields: fields_of(web, output, urls, **fields)


@pytest.fixture(name="outcomes_of")
def outcomes_by_address() -> Callable[[Path], dict[str, dict[str, Any]]]:
    return outcomes_of


def config_of(web: LoopbackWeb, output: Path, urls: Any, **fields: Any) -> FetchPagesConfig:
    return unwrap_versioned_value(FetchPagesConfig(**fields_of(web, output, urls, **fields)))  # type: ignore[no-any-return]


def fields_of(web: LoopbackWeb, output: Path, urls: Any, **fields: Any) -> dict[str, Any]:
    return {
        "contact": CONTACT,
        "agent": "OwlBot",
        "urls": tuple(urls),
        "output_path": str(output),
        "delay_s": 0.1,
        "backoff_s": 0.1,
        "patience_s": 1.0,
        "max_page_bytes": 1_000_000,
        "connections": 50,
        "commit_s": 0.2,
        "allowed_networks": ("127.0.0.0/8",),
        "hosts": web.hosts,
        **fields,
    }


def outcomes_of(output: Path) -> dict[str, dict[str, Any]]:
    shards = list_shards(f"{output}/outcomes")
    return {row["url"]: dict(row) for shard in shards for _, row in read_rows(shard)}  # type: ignore[call-overload]

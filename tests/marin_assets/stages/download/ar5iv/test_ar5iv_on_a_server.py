"""An archive on a server is read by ranges, through the faults of the server."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from crawl_server import CrawlServer
from crawls import Read
from latexml_papers import papers, write_archive

NAME = "ar5iv-04-2024-no-problem.zip"


def test_an_archive_on_a_server_is_read_by_ranges_alone_and_its_directory_once(
    tmp_path: Path, read: Read, server: CrawlServer
) -> None:
    others = {f"2105/{n}.png": random.Random(n).randbytes(300_000) for n in range(12)}
    rows = [row for pair in zip(papers(12, size=20_000).items(), others.items(), strict=True) for row in pair]
    path = write_archive(tmp_path / "zip" / NAME, rows)
    whole = read(path)
    content = path.read_bytes()
    server.files = {NAME: content, "sets.paths": f"{NAME}\n".encode()}
    counts, pages = read(server.url + NAME, shard_bytes=100_000)
    assert pages == whole[1]
    ranges = [held for method, name, held in server.requests if method == "GET" and name == NAME]
    assert all(held.startswith("bytes=") for held in ranges)
    directory = len(content) - 2**16
    assert sum(int(held[6:].split("-")[0]) >= directory for held in ranges) <= 2
    assert server.sent_bytes[NAME] < 0.7 * len(content)
    assert counts["requests"] == len(ranges)
    server.fault(NAME, "busy", "cut", "hang_up", "ignore_range", "cut")
    counts, pages = read(server.url + "sets.paths", base_url=server.url)
    assert pages == whole[1]
    assert counts["retries"] >= 1
    assert not counts["rejected"]


def test_an_archive_that_changes_on_its_server_is_an_error(tmp_path: Path, read: Read, server: CrawlServer) -> None:
    server.files = {NAME: write_archive(tmp_path / NAME, papers(20)).read_bytes()}
    server.fault(NAME, "", *["other_etag"] * 40)
    with pytest.raises(Exception, match="the server has the ETag"):
        read(server.url + NAME)

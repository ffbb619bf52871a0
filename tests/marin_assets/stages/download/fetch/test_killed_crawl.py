"""A crawl that is killed again and again has the outcomes of one that is not."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import loopback_web
import pytest
from crawls import documents_of
from loopback_web import HOSTS, LoopbackWeb

from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
from marin_assets.step.values import unwrap_versioned_value

KILLS = 10
DELAY_S, COMMIT_S = 0.15, 0.2


def start(fields: dict[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, loopback_web.__file__, json.dumps(fields)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@pytest.mark.long
def test_a_crawl_that_is_killed_ten_times_has_every_page_once_politely(
    web: LoopbackWeb, crawl_fields: Any, outcomes_of: Any, tmp_path: Path
) -> None:
    fields = crawl_fields(tmp_path / "crawl", web.urls, delay_s=DELAY_S, commit_s=COMMIT_S)
    draw, kills = random.Random(12), 0
    for _ in range(KILLS):
        process = start(fields)
        try:
            process.wait(draw.uniform(1.5, 4.0))
            break
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            kills += 1
    output, _ = start(fields).communicate(timeout=120)
    counts = json.loads(output)
    assert kills == KILLS
    rows = outcomes_of(tmp_path / "crawl")
    assert {url: rows[url]["outcome"] for url in web.expected} == web.expected
    assert web.most_open == 1
    assert web.least_gap_s() >= DELAY_S
    # what a kill lost is requested again, and nothing else: for each kill at most the pages of one batch
    requested = Counter(
        (host, path) for _, host, path, _ in web.requests if path.startswith("p") and path[1:].isdecimal()
    )
    repeated = sum(requested.values()) - len(requested)
    assert repeated <= kills * HOSTS * (1 + COMMIT_S / DELAY_S)
    config = ReadWarcConfig(input_path=str(tmp_path / "crawl/warc"), output_path=str(tmp_path / "pages"))
    read = read_warc(unwrap_versioned_value(config))
    assert read["pages"] == counts["fetched"]
    pages = documents_of(tmp_path / "pages")
    fetched = {row.get("target", url) for url, row in rows.items() if row["outcome"] == "fetched"}
    assert Counter(page.metadata["url"] for page in pages) == dict.fromkeys(fetched, 1)
    for file in (tmp_path / "crawl/warc").iterdir():
        assert gzip.decompress(file.read_bytes()).endswith(b"\r\n\r\n")

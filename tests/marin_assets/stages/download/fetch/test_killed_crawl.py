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
from loopback_web import HOSTS, LoopbackWeb, answer, page, trick

from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
from marin_assets.step.values import unwrap_versioned_value

KILLS = 10
DELAY_S, COMMIT_S = 0.35, 0.2


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
    # what was in flight at a kill is requested again, and nothing else: for each kill at most a page of each host
    requested = Counter(
        (host, path) for _, host, path, _ in web.requests if path.startswith("p") and path[1:].isdecimal()
    )
    repeated = sum(requested.values()) - len(requested)
    assert repeated <= kills * HOSTS
    config = ReadWarcConfig(input_path=str(tmp_path / "crawl/warc"), output_path=str(tmp_path / "pages"))
    read = read_warc(unwrap_versioned_value(config))
    assert read["pages"] == counts["fetched"]
    pages = documents_of(tmp_path / "pages")
    fetched = {row.get("target", url) for url, row in rows.items() if row["outcome"] == "fetched"}
    assert Counter(page.metadata["url"] for page in pages) == dict.fromkeys(fetched, 1)
    for file in (tmp_path / "crawl/warc").iterdir():
        assert gzip.decompress(file.read_bytes()).endswith(b"\r\n\r\n")


class Killer:
    """Kills the crawl when a path is requested for the n-th time, before the answer; otherwise answers by itself."""

    def __init__(self, nth: int, reply: bytes) -> None:
        self.nth, self.reply, self.count = nth, reply, 0
        self.process: subprocess.Popen[str] | None = None

    async def __call__(self, *arguments: Any) -> None:
        self.count += 1
        if self.count == self.nth:
            assert self.process is not None
            self.process.kill()
            return
        await arguments[-1](self.reply)

    def run(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Crawl until the kill, and then to the end. Returns the counts."""
        self.process = start(fields)
        self.process.communicate()
        assert self.process.returncode == -signal.SIGKILL
        output, _ = start(fields).communicate(timeout=60)
        return json.loads(output)  # type: ignore[no-any-return]


def requests_of(web: LoopbackWeb) -> Counter[str]:
    return Counter(path for _, _, path, _ in web.requests)


@pytest.mark.long
@pytest.mark.parametrize("commit_s", [0.0, 3600.0], ids=["batches", "journal"])
def test_a_page_whose_answer_had_arrived_is_not_requested_again_after_a_kill(
    web: LoopbackWeb, crawl_fields: Any, outcomes_of: Any, tmp_path: Path, commit_s: float
) -> None:
    paths = [f"p{number}" for number in range(12)]
    with trick("kill", killer := Killer(1, answer(page("kill")))):
        urls = [web.url("h16.example", path) for path in [*paths, "kill"]]
        counts = killer.run(crawl_fields(tmp_path / "crawl", urls, delay_s=0.02, commit_s=commit_s))
    assert requests_of(web) == {"robots.txt": 2, "kill": 2, **dict.fromkeys(paths, 1)}
    assert counts["fetched"] == 13
    config = ReadWarcConfig(input_path=str(tmp_path / "crawl/warc"), output_path=str(tmp_path / "pages"))
    assert read_warc(unwrap_versioned_value(config))["pages"] == 13
    assert {row["outcome"] for row in outcomes_of(tmp_path / "crawl").values()} == {"fetched"}


@pytest.mark.long
def test_tries_failures_and_waits_count_on_after_a_kill(
    web: LoopbackWeb, crawl_fields: Any, outcomes_of: Any, tmp_path: Path
) -> None:
    with trick("broken", killer := Killer(3, answer(b"broken", "500 Internal Server Error"))):
        urls = [web.url("h16.example", "broken"), web.url("h00.example", "p0")]
        killer.run(crawl_fields(tmp_path / "crawl", urls, tries=4, backoff_s=0.4, commit_s=3600.0))
    # two tries, one that the kill cut, and the two that are left
    assert requests_of(web)["broken"] == 5
    assert outcomes_of(tmp_path / "crawl")[urls[0]]["outcome"] == "server_error"
    at = [time for time, _, path, _ in web.requests if path == "broken"]
    assert at[1] - at[0] >= 0.4
    assert at[2] - at[1] >= 0.8
    assert at[4] - at[3] >= 1.6  # the wait after the third failure in a row


@pytest.mark.long
def test_a_host_ends_after_its_failures_of_all_attempts(web: LoopbackWeb, crawl_fields: Any, tmp_path: Path) -> None:
    with trick("broken", killer := Killer(3, answer(b"broken", "503 Service Unavailable"))):
        urls = [web.url("h16.example", "broken")]
        fields = crawl_fields(tmp_path / "crawl", urls, tries=9, max_host_failures=4, backoff_s=0.0, commit_s=3600.0)
        with pytest.raises(json.JSONDecodeError):  # no page was fetched, so the stage ends with an error
            killer.run(fields)
    assert killer.count == 5


@pytest.mark.long
def test_a_crawl_that_is_killed_behind_its_last_page_has_its_result_and_requests_nothing(
    web: LoopbackWeb, crawl_fields: Any, tmp_path: Path
) -> None:
    fields = crawl_fields(tmp_path / "crawl", web.urls, delay_s=0.01, commit_s=COMMIT_S)
    first, _ = start(fields).communicate(timeout=120)
    requests = len(web.requests)
    again, _ = start(fields).communicate(timeout=120)  # its step was not complete yet
    assert json.loads(again) == json.loads(first)
    assert len(web.requests) == requests

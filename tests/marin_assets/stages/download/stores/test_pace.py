"""All workers of a step together send no more requests in a second than allowed, and wait when a server states it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from crawl_server import CrawlServer

from marin_assets.stages.download.file_lists import DownloadListedConfig, download_listed
from marin_assets.stages.download.stores.access import StoreAccess
from marin_assets.stages.download.web.faults import DownloadError
from marin_assets.stages.download.web.pace import Pace
from marin_assets.step.values import unwrap_versioned_value

ORIGIN = "http://a.org"


def taken(output: str, rate: float, *, workers: int, requests: int) -> list[float]:
    """The times of the requests of several workers at once, each with a Pace of its own as in a process of its own."""
    times_s: list[float] = []

    def work() -> None:
        pace = Pace(output, ORIGIN, rate, threading.Event())
        for _ in range(requests):
            pace.take()
            times_s.append(time.time())

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(times_s)


def test_workers_share_the_requests_of_a_second(disk_or_gcs_prefix: str) -> None:
    times_s = taken(disk_or_gcs_prefix, 20.0, workers=3, requests=8)
    assert times_s[-1] - times_s[0] >= 23 / 20 - 0.05
    for first_s in times_s:
        assert sum(first_s <= other_s < first_s + 0.5 for other_s in times_s) <= 11 + 2


def test_a_wait_that_a_server_states_holds_for_all_workers(output: Path) -> None:
    refused, other = (Pace(str(output), ORIGIN, None, threading.Event()) for _ in range(2))
    began_s = time.time()
    refused.pause(0.5)
    other.take()
    assert time.time() - began_s >= 0.49


def test_a_wait_of_one_host_does_not_hold_for_another(output: Path) -> None:
    Pace(str(output), ORIGIN, None, threading.Event()).pause(60)
    Pace(str(output), "http://b.org", None, threading.Event()).take()


def test_a_worker_that_waits_ends_when_the_download_is_stopped(output: Path) -> None:
    stop = threading.Event()
    pace = Pace(str(output), ORIGIN, None, stop)
    pace.pause(60)
    stop.set()
    with pytest.raises(DownloadError, match="was stopped, as another file failed"):
        pace.take()


def test_a_slot_of_a_machine_with_a_wrong_clock_is_ignored(output: Path) -> None:
    pace = Pace(str(output), ORIGIN, 100.0, threading.Event())
    pace.take()
    control = next((output / ".download").glob("pace-*.json"))
    control.write_text('{"next_s": 99999999999.0, "writer": "x"}')
    pace.take()


def test_a_server_gets_no_more_requests_in_a_second_than_allowed(server: CrawlServer, output: Path) -> None:
    server.files = {f"{number}.bin": b"x" for number in range(10)}
    config = DownloadListedConfig(
        base=server.url,
        names=tuple(server.files),
        output_path=str(output),
        access=StoreAccess(max_requests_per_s=20.0),
    )
    assert download_listed(unwrap_versioned_value(config))["files"] == 10
    assert len(server.times_s) == 20
    assert server.times_s[-1] - server.times_s[0] >= 19 / 20 - 0.05


def test_a_server_has_no_more_connections_than_allowed(server: CrawlServer, output: Path) -> None:
    server.files = {f"{number}.bin": bytes(50_000) for number in range(6)}
    server.most_connections = 2
    access = StoreAccess(max_connections=2, range_bytes=10_000, ranges_in_flight=5)
    config = DownloadListedConfig(base=server.url, names=tuple(server.files), output_path=str(output), access=access)
    result = download_listed(unwrap_versioned_value(config))
    assert result["files"] == 6
    assert server.most_at_once <= 3  # the server notices the end of an answer a moment later

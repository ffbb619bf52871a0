"""The order in which hosts are visited."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from marin_assets.stages.download.fetch import frontier as module
from marin_assets.stages.download.fetch.frontier import Frontier, Host, Job
from marin_assets.stages.download.links.addresses import Url, canonical_url


def job(host: str, path: str = "") -> Job:
    url = canonical_url(f"http://{host}.example/{path}")
    assert isinstance(url, Url)
    return Job(key=url.url, first=url, url=url)


def test_a_host_is_visited_by_one_at_a_time_and_after_its_time() -> None:
    frontier = Frontier(iter([job("a", "1"), job("a", "2"), job("b", "1")]), first_wait_s=0.0)
    first, second = frontier.take(), frontier.take()
    assert first is not None
    assert second is not None
    assert [turn[0].name for turn in (first, second)] == ["a.example", "b.example"]
    frontier.release(first[0], 0.2)
    frontier.release(second[0], 0.0)
    began_s = time.monotonic()
    third = frontier.take()
    assert third is not None
    assert third[1].url.target == "/2"
    assert time.monotonic() - began_s >= 0.19
    frontier.release(third[0], 60.0)
    assert frontier.take() is None


def test_memory_holds_a_window_of_the_addresses() -> None:
    read = []

    def jobs() -> object:
        for number in range(50):
            read.append(number)
            yield job(f"h{number}")

    frontier = Frontier(jobs(), first_wait_s=0.0, window=5)  # type: ignore[arg-type]
    count = 0
    while (turn := frontier.take()) is not None:
        count += 1
        assert len(read) <= count + 5
        frontier.release(turn[0], 0.0)
    assert count == 50


def test_hosts_that_failed_or_ended_take_no_memory_and_stay_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOSTS_HELD", 10)
    pages = [*(job(f"h{number}") for number in range(100)), job("h0", "again")]
    frontier = Frontier(iter(pages), first_wait_s=0.0, window=1)
    ended = []
    while (turn := frontier.take()) is not None:
        host = turn[0]
        ended.append(host.ended)
        host.failures, host.ended = 1, "unresolved"
        frontier.release(host, 0.0)
    del turn, host
    assert ended == [*[""] * 100, "unresolved"]
    assert sum(type(item) is Host for item in gc.get_objects()) <= 11


def test_waiting_takes_no_processor_time() -> None:
    frontier = Frontier(iter([job("a", "1"), job("a", "2")]), first_wait_s=0.0)
    turn = frontier.take()
    assert turn is not None
    frontier.release(turn[0], 0.5)
    began_s = time.process_time()
    threads = [threading.Thread(target=frontier.take) for _ in range(20)]
    for thread in threads:
        thread.start()
    threads[0].join(0.4)
    assert time.process_time() - began_s < 0.2
    frontier.stop()
    for thread in threads:
        thread.join()

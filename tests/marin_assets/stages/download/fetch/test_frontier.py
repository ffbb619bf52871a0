"""The order in which hosts are visited."""

from __future__ import annotations

import threading
import time

from marin_assets.stages.download.fetch.frontier import Frontier, Job
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

"""The order in which hosts are visited."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections import Counter

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


def test_hosts_that_share_an_address_take_turns_and_none_is_left_waiting() -> None:
    drawn = random.Random(7)
    addresses = {f"h{number}": drawn.sample("abcd", drawn.choice([1, 1, 2, 3])) for number in range(40)}
    jobs = [job(name, str(page)) for name in addresses for page in range(4)]
    drawn.shuffle(jobs)
    frontier = Frontier(iter(jobs), first_wait_s=0.0)
    visited, visits, lock = Counter[str](), Counter[str](), threading.Lock()

    def work() -> None:
        while (turn := frontier.take()) is not None:
            host, taken = turn
            own = addresses[host.name.partition(".")[0]]
            if taken.url.target == "/3":  # refused without a request
                with lock:
                    visits[taken.key] += 1
            elif frontier.occupy(host, own):
                with lock:
                    visited.update(own)
                    assert max(visited.values()) == 1
                    visits[taken.key] += 1
                time.sleep(0)
                with lock:
                    visited.subtract(own)
            else:
                frontier.add(taken, first=True)
            frontier.release(host, 0.0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert visits == dict.fromkeys((one.key for one in jobs), 1)


def test_an_address_rests_between_two_hosts_and_a_host_elsewhere_does_not_wait_for_it() -> None:
    frontier = Frontier(iter([job("a"), job("b"), job("c")]), first_wait_s=0.0, address_delay_s=0.3)
    at = {"a.example": ["1"], "b.example": ["1"], "c.example": ["2"]}
    order, began_s = [], time.monotonic()
    while (turn := frontier.take()) is not None:
        host, taken = turn
        if frontier.occupy(host, at[host.name]):
            order.append((host.name, time.monotonic() - began_s))
        else:
            frontier.add(taken, first=True)
        frontier.release(host, 0.0)
    assert [name for name, _ in order] == ["a.example", "c.example", "b.example"]
    assert order[2][1] - order[0][1] >= 0.3

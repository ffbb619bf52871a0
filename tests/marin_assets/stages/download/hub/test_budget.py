"""The requests to the hub in five minutes have a limit, for all workers of a step together."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from pathlib import Path

import pytest
from dataset_hub import DatasetHub
from hub_downloads import FILES, NAME, download, files_of

from marin_assets.stages.download.hub import budget as budget_module
from marin_assets.stages.download.hub.budget import WINDOW_S, Budget
from marin_assets.stages.download.web.faults import DownloadError
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import UnavailableError


class Clock:
    """A clock that waits move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1e9
        self.waits: list[float] = []
        monkeypatch.setattr(budget_module.time, "time", lambda: self.now_s)
        monkeypatch.setattr(budget_module, "wait", self.wait)

    def wait(self, stop: threading.Event, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def budget_at(place: str, most: int) -> Budget:
    return Budget(f"{place}/budget.json", most, threading.Event())


def test_no_window_has_more_requests_than_its_limit(any_prefix: str, clock: Clock) -> None:
    workers = [budget_at(any_prefix, 50) for _ in range(3)]
    sent: list[float] = []
    for i in range(120):
        workers[i % 3].take()
        sent.append(clock.now_s)
    counts = [sent.count(at) for at in sorted(set(sent))]
    assert max(counts) <= 50
    assert min(counts[:-1]) >= 50 - 2 * 2  # the other workers may hold a block of two
    assert clock.waits == [WINDOW_S, WINDOW_S]


def test_requests_that_a_worker_did_not_use_are_returned(tmp_path: Path, clock: Clock) -> None:
    first, second = budget_at(str(tmp_path), 40), budget_at(str(tmp_path), 40)
    first.take()
    first.close()
    for _ in range(39):
        second.take()
    assert not clock.waits
    second.take()
    assert clock.waits == [WINDOW_S]


def test_a_hub_that_reports_its_limit_stops_all_workers(tmp_path: Path, clock: Clock) -> None:
    first, second = budget_at(str(tmp_path), 100), budget_at(str(tmp_path), 100)
    second.take()
    first.pause(42.0)
    first.take()
    assert clock.waits == [42.0]


def test_many_threads_take_no_more_than_the_limit(tmp_path: Path) -> None:
    stop = threading.Event()
    budgets = [Budget(f"{tmp_path}/budget.json", 30, stop) for _ in range(4)]
    taken: list[int] = []

    def work(budget: Budget) -> None:
        with contextlib.suppress(DownloadError):  # as it is stopped
            while True:
                budget.take()
                taken.append(1)

    threads = [threading.Thread(target=work, args=(budget,)) for budget in budgets for _ in range(2)]
    for thread in threads:
        thread.start()
    deadline_s = time.monotonic() + 30
    while len(taken) < 30 and time.monotonic() < deadline_s:
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(taken) == 30


def test_a_download_waits_until_the_hub_has_requests_again(hub: DatasetHub, output: Path) -> None:
    hub.limit = 3
    result = download(output)
    assert files_of(output) == FILES
    assert result["retries_limited"] == 1


def test_workers_on_ray_share_one_budget(shared_ray: None, hub: DatasetHub, output: Path) -> None:
    files = {f"{i:02}.bin": b"%d" % i * 999 for i in range(20)}
    hub.add(NAME, files)
    assert download(output, max_shard_files=2, max_requests_per_5_min=200)["requests"] == len(hub.requests)
    assert files_of(output) == files
    assert json.loads((output / ".hub/budget.json").read_text())["used"] == hub.count("hub") == 22


def test_a_store_that_refuses_writes_now_and_then_is_no_fault(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, refusals = control.write, iter([True, True, False, True] + [False] * 9)

    def busy(path: str, data: bytes, *, expected: str | None) -> str:
        if next(refusals):
            raise UnavailableError("429: too many writes.")
        return write(path, data, expected=expected)

    monkeypatch.setattr(control, "write", busy)
    budget = budget_at(str(tmp_path), 100)
    for _ in range(10):
        budget.take()
    assert len(clock.waits) == 3
    refusals = iter([True] * 99)
    with pytest.raises(UnavailableError, match="too many writes"):
        budget.pause(1.0)


def test_the_shards_of_a_download_share_one_budget(hub: DatasetHub, output: Path) -> None:
    result = download(output, max_shard_files=1, max_requests_per_5_min=1000)
    used = json.loads((output / ".hub/budget.json").read_text())["used"]
    assert used == hub.count("hub")
    assert result["requests"] == len(hub.requests)

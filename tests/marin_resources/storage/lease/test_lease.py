"""The lease on each kind of store: a local disk, GCS and S3."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lease_reports import Reports
from manual_clock import ManualClock
from running import wait_until

from marin_resources.storage.control import control
from marin_resources.storage.files import exists, remove
from marin_resources.storage.lease import heartbeat
from marin_resources.storage.lease import text as lease_text
from marin_resources.storage.lease.heartbeat import RENEWALS_IN_A_LIFE
from marin_resources.storage.lease.lease import NAME, acquire, holder_of
from marin_resources.storage.lease.protocol import Lease, LeaseHeldError, LeaseLostError
from marin_resources.storage.lease.watch import LeaseWatch
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Holder
from marin_resources.types.versioned_json import ControlFileError

HOLD = """
import sys, time
from marin_resources.storage.lease.lease import acquire
lease = acquire(sys.argv[1], sys.argv[2], attempt=3)

class Printer:
    def renewed(self, deadline_s):
        pass
    def released(self):
        pass
    def lost(self, reason):
        print("lost", reason, flush=True)

lease.observe(Printer())
print(lease.holder.owner, flush=True)
time.sleep(60)
"""


@contextmanager
def other_process_holds(path: str, ttl_s: float = 90) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, path, "run-7"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, lease_text.TTL_VARIABLE: str(ttl_s)},
    )
    assert process.stdout is not None
    process.owner = process.stdout.readline().strip()  # type: ignore[attr-defined]
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def path(any_prefix: str) -> str:
    return join(any_prefix, "raw/x-abc123")


@pytest.fixture(params=["gcs", "s3"])
def bucket_path(request: pytest.FixtureRequest) -> str:
    import object_stores

    fresh = {"gcs": object_stores.gcs_prefix, "s3": object_stores.s3_prefix}
    return join(fresh[request.param](), "raw/x-abc123")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The clock of the leases of this process. Their time to live is 90 s."""
    clock = ManualClock()
    monkeypatch.setattr(heartbeat, "CLOCK", clock)
    return clock


def held_by(path: str) -> Holder:
    holder = holder_of(path)
    assert holder is not None
    return holder


def renewed_after(path: str, generation: str) -> str | None:
    latest = held_by(path).generation
    return latest if latest != generation else None


def lost_reason(lease: Lease) -> str:
    reports = Reports()
    lease.observe(reports)
    wait_until(lambda: reports.losses, "the lease to be lost", timeout_s=20)
    return reports.losses[0]


def test_a_second_process_is_refused_with_the_holder(path: str) -> None:
    with other_process_holds(path) as process:
        with pytest.raises(LeaseHeldError) as caught:
            acquire(path, None)
        holder = caught.value.holder
        assert (holder.pid, holder.host, holder.run_id) == (process.pid, os.uname().nodename, "run-7")
        assert holder.owner == process.owner == held_by(path).owner  # type: ignore[attr-defined]
        assert holder.attempt == 3
        assert f"process {process.pid} on {os.uname().nodename}, Dagster run run-7, since 20" in str(caught.value)
        assert "last heartbeat 20" in str(caught.value)


def test_a_kill_frees_a_lease_on_disk_at_once(tmp_path: Path) -> None:
    with other_process_holds(str(tmp_path)) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert (tmp_path / NAME).exists()
        assert holder_of(str(tmp_path)) is None
        began = time.monotonic()
        acquire(str(tmp_path), None).release()
        assert time.monotonic() - began < 1


def test_a_killed_holders_lease_in_a_bucket_is_taken_over_after_its_time_to_live(
    bucket_path: str, clock: ManualClock
) -> None:
    with other_process_holds(bucket_path) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        watch = LeaseWatch(clock.now_s)
        assert not watch.is_stale(held_by(bucket_path), watch.begin())
        clock.advance(90)
        assert not watch.is_stale(held_by(bucket_path), watch.begin())
        clock.advance(1)
        holder = held_by(bucket_path)
        assert watch.is_stale(holder, watch.begin())
        with pytest.raises(LeaseHeldError):
            acquire(bucket_path, None)
        taken = acquire(bucket_path, None, stale=holder.generation)
        taken.check()
        taken.release()


def test_a_renewed_lease_is_never_stale_and_cannot_be_taken_over(bucket_path: str, clock: ManualClock) -> None:
    lease = acquire(bucket_path, "run-1")
    first = latest = held_by(bucket_path).generation
    watch = LeaseWatch(clock.now_s)
    for _ in range(2 * RENEWALS_IN_A_LIFE):
        clock.advance(90 / RENEWALS_IN_A_LIFE)
        latest = wait_until(lambda old=latest: renewed_after(bucket_path, old), "a renewal")  # type: ignore[misc]
        assert not watch.is_stale(held_by(bucket_path), watch.begin())
    with pytest.raises(LeaseHeldError):
        acquire(bucket_path, None, stale=first)
    lease.check()
    lease.release()


def test_an_observer_learns_each_deadline_and_the_release(bucket_path: str, clock: ManualClock) -> None:
    lease, reports = acquire(bucket_path, "run-1"), Reports()
    lease.observe(reports)
    assert reports.deadlines_s == [clock.now_s() + 72]
    clock.advance(90 / RENEWALS_IN_A_LIFE)
    wait_until(lambda: len(reports.deadlines_s) == 2, "a renewal")
    assert reports.deadlines_s[1] == clock.now_s() + 72
    lease.release()
    assert (reports.releases, reports.losses) == (1, [])


def test_staleness_is_judged_by_the_observers_clock_alone() -> None:
    now = [100.0]
    watch = LeaseWatch(lambda: now[0])
    holder = Holder(owner="o", host="h", pid=1, run_id=None, since="?", heartbeat="1970", ttl_s=90, generation="1")
    assert not watch.is_stale(holder, watch.begin())
    now[0] += 89
    assert not watch.is_stale(holder, watch.begin())
    now[0] += 2
    assert watch.is_stale(holder, watch.begin())
    renewed = Holder(**{**vars(holder), "generation": "2"})
    assert not watch.is_stale(renewed, watch.begin())


def test_a_released_lease_has_no_holder_and_can_be_taken(path: str) -> None:
    lease = acquire(path, None)
    lease.check()
    lease.release()
    assert holder_of(path) is None
    if is_local(path):
        assert not exists(join(path, NAME))
    again = acquire(path, None)
    again.check()
    again.release()


def test_the_file_holds_what_marin_reads_and_nothing_else(path: str) -> None:
    """Marin reads it into a class of two fields and fails on a third."""
    lease = acquire(path, "run-1")
    text = json.loads(control.read(join(path, NAME)).data)  # type: ignore[union-attr]
    lease.release()
    assert set(text) == {"worker_id", "timestamp"}
    assert f"owner={lease.holder.owner} " in text["worker_id"]
    assert abs(text["timestamp"] - time.time()) < 60


def test_a_released_lease_in_a_bucket_is_stale_to_marin(bucket_path: str) -> None:
    acquire(bucket_path, None).release()
    text = json.loads(control.read(join(bucket_path, NAME)).data)  # type: ignore[union-attr]
    assert set(text) == {"worker_id", "timestamp"}
    assert text["timestamp"] == 0


def test_a_lease_of_marins_is_respected_until_its_time_to_live_is_over(path: str) -> None:
    lock = join(path, NAME)
    control.put(lock, json.dumps({"worker_id": "node-7-1402", "timestamp": time.time() - 3600}).encode())
    with pytest.raises(LeaseHeldError, match="is being computed by 'node-7-1402', last heartbeat 20"):
        acquire(path, None)
    holder = held_by(path)
    assert (holder.ttl_s, holder.owner) == (90, "node-7-1402")
    control.put(lock, json.dumps({"worker_id": "node-7-1402", "timestamp": time.time()}).encode())
    with pytest.raises(LeaseHeldError):  # it has been renewed since
        acquire(path, None, stale=holder.generation)
    taken = acquire(path, None, stale=held_by(path).generation)
    taken.check()
    taken.release()


def test_one_process_holds_a_lease_once(path: str) -> None:
    lease = acquire(path, None)
    with pytest.raises(LeaseHeldError):
        acquire(path, None)
    lease.release()


def test_a_lease_that_was_taken_over_is_lost_with_the_next_heartbeat_and_the_new_one_is_left(
    bucket_path: str, clock: ManualClock
) -> None:
    lost = acquire(bucket_path, None)
    taken = acquire(bucket_path, "run-2", stale=held_by(bucket_path).generation)
    clock.advance(90 / RENEWALS_IN_A_LIFE)
    assert "taken over by process" in lost_reason(lost)
    with pytest.raises(LeaseLostError, match=r"Nothing is published; run again\."):
        lost.check()
    lost.release()
    taken.check()
    assert held_by(bucket_path).owner == taken.holder.owner
    taken.release()


def test_a_lease_whose_file_was_removed_is_lost_within_a_heartbeat(path: str, clock: ManualClock) -> None:
    lease = acquire(path, None)
    remove(join(path, NAME))
    clock.advance(90 / RENEWALS_IN_A_LIFE)
    assert "removed" in lost_reason(lease)
    lease.release()
    assert not exists(join(path, NAME))


def test_a_lease_on_disk_whose_file_was_replaced_is_lost_and_the_new_file_is_left(tmp_path: Path) -> None:
    lease = acquire(str(tmp_path), None)
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).write_text("somebody else's")
    with pytest.raises(LeaseLostError, match="was removed or replaced while it was held"):
        lease.check()
    lease.release()
    assert (tmp_path / NAME).read_text() == "somebody else's"


def test_a_holder_that_cannot_renew_stops_before_it_can_be_stale(
    bucket_path: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is down, or hangs: no response is awaited for longer than the lease's time to live."""
    lease = acquire(bucket_path, None)
    hangs, hang = threading.Event(), threading.Event()
    monkeypatch.setattr(control, "write", lambda *args, **kwargs: (hangs.set(), hang.wait(30)))
    clock.advance(72)
    assert hangs.wait(20)
    lease.check()
    clock.advance(0.1, hung=1)
    assert "could not be renewed for 72 s" in lost_reason(lease)
    with pytest.raises(LeaseLostError):
        lease.check()
    monkeypatch.undo()
    hang.set()


def test_a_holder_that_was_paused_beyond_its_life_finds_its_lease_lost(bucket_path: str) -> None:
    with other_process_holds(bucket_path, ttl_s=1) as process:
        assert process.stdout is not None
        os.kill(process.pid, signal.SIGSTOP)
        taken = acquire(bucket_path, None, stale=held_by(bucket_path).generation)
        os.kill(process.pid, signal.SIGCONT)
        assert process.stdout.readline().startswith("lost ")
        taken.check()
        taken.release()


def test_on_a_disk_our_file_without_a_lock_is_a_free_lease(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(json.dumps({"worker_id": "owner=gone host=h pid=1", "timestamp": 1}))
    assert holder_of(str(tmp_path)) is None
    acquire(str(tmp_path), None).release()


def test_reading_the_holder_never_makes_an_acquisition_fail(tmp_path: Path) -> None:
    stop = threading.Event()
    looker = threading.Thread(target=lambda: [holder_of(str(tmp_path)) for _ in iter(stop.is_set, True)])
    looker.start()
    try:
        for _ in range(50):
            acquire(str(tmp_path), None).release()
    finally:
        stop.set()
        looker.join()


def test_of_many_threads_one_holds_the_lease_at_a_time(path: str) -> None:
    inside, most, done = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, done
        while done < 20:
            try:
                lease = acquire(path, None)
            except LeaseHeldError:
                continue
            inside += 1
            most = max(most, inside)
            time.sleep(0.001)
            lease.check()
            inside -= 1
            done += 1
            lease.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\x00",
        b"[]",
        b'{"worker_id": "w", "timestamp": 1e400}',
        b'{"worker_id": "owner=a pid=many", "timestamp": 1}',
        b'{"worker_id": "owner=a ttl_s=inf", "timestamp": 1}',
        b'{"worker_id": ' + b"[" * 100_000,
    ],
)
def test_a_lease_that_cannot_be_read_is_held_by_an_unknown_holder_until_it_is_stale(
    tmp_path: Path, text: bytes
) -> None:
    lock = tmp_path / NAME
    lock.write_bytes(text)
    holder = holder_of(str(tmp_path))
    assert holder is not None
    assert f"the lease {str(lock)!r} cannot be read" in holder.describe()
    assert "\n" not in holder.describe()
    with pytest.raises(LeaseHeldError, match="cannot be read"):
        acquire(str(tmp_path), None)
    acquire(str(tmp_path), None, stale=holder.generation).release()


def test_a_folder_in_the_place_of_a_lease_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    for look in (holder_of, lambda path: acquire(path, None)):
        with pytest.raises(ControlFileError, match=r"\.executor_status\.lock' is a folder, expected a file\. Move"):
            look(str(tmp_path))


def test_a_file_in_the_place_of_an_output_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(
        ControlFileError, match=r"x' cannot be created, as a file is in its place\. Move that file aside"
    ):
        acquire(str(tmp_path / "x"), None)

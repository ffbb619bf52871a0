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

from marin_resources.storage.lease import NAME, LeaseHeldError, LeaseLostError, acquire, holder_of

HOLD = """
import sys, time
from marin_resources.storage.lease import acquire
lease = acquire(sys.argv[1], sys.argv[2])
print(lease.holder.owner, flush=True)
time.sleep(60)
"""


@contextmanager
def other_process_holds(path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), "run-7"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    process.owner = process.stdout.readline().strip()  # type: ignore[attr-defined]
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_second_process_is_refused_and_told_who_works(tmp_path: Path) -> None:
    with other_process_holds(tmp_path) as process:
        with pytest.raises(LeaseHeldError) as caught:
            acquire(str(tmp_path), None)
        holder = caught.value.holder
        assert holder == holder_of(str(tmp_path))
        assert (holder.pid, holder.host, holder.run_id) == (process.pid, os.uname().nodename, "run-7")
        assert holder.owner == process.owner  # type: ignore[attr-defined]
        assert f"process {process.pid} on {os.uname().nodename}, Dagster run run-7" in str(caught.value)


def test_a_kill_frees_the_lease_at_once(tmp_path: Path) -> None:
    with other_process_holds(tmp_path) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert (tmp_path / NAME).exists()
        assert holder_of(str(tmp_path)) is None
        began = time.monotonic()
        acquire(str(tmp_path), None).release()
        assert time.monotonic() - began < 1


def test_a_released_lease_leaves_no_file_and_no_holder(tmp_path: Path) -> None:
    lease = acquire(str(tmp_path), None)
    lease.check()
    lease.release()
    assert not (tmp_path / NAME).exists()
    assert holder_of(str(tmp_path)) is None


def test_the_file_says_what_marin_wants_to_know(tmp_path: Path) -> None:
    lease = acquire(str(tmp_path), "run-1")
    text = json.loads((tmp_path / NAME).read_text())
    lease.release()
    assert text["worker_id"] == lease.holder.owner
    assert abs(text["timestamp"] - time.time()) < 60
    assert text["format_version"] == 1


def test_one_process_holds_a_lease_once(tmp_path: Path) -> None:
    lease = acquire(str(tmp_path), None)
    with pytest.raises(LeaseHeldError):
        acquire(str(tmp_path), None)
    lease.release()


def test_a_lease_whose_file_was_replaced_is_lost_and_the_new_file_is_left(tmp_path: Path) -> None:
    lease = acquire(str(tmp_path), None)
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).write_text("somebody else's")
    with pytest.raises(LeaseLostError, match="was removed or replaced while its holder worked"):
        lease.check()
    lease.release()
    assert (tmp_path / NAME).read_text() == "somebody else's"


def test_a_lease_whose_file_was_removed_is_lost_and_can_be_taken(tmp_path: Path) -> None:
    lost = acquire(str(tmp_path), None)
    (tmp_path / NAME).unlink()
    with pytest.raises(LeaseLostError):
        lost.check()
    taken = acquire(str(tmp_path), None)
    lost.release()
    taken.check()
    taken.release()


def test_a_file_without_a_lock_on_it_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(json.dumps({"worker_id": "gone-1", "timestamp": 0}))
    assert holder_of(str(tmp_path)) is None
    acquire(str(tmp_path), None).release()


def test_looking_never_makes_an_acquisition_fail(tmp_path: Path) -> None:
    stop = threading.Event()
    looker = threading.Thread(target=lambda: [holder_of(str(tmp_path)) for _ in iter(stop.is_set, True)])
    looker.start()
    try:
        for _ in range(50):
            acquire(str(tmp_path), None).release()
    finally:
        stop.set()
        looker.join()


def test_of_many_threads_one_holds_the_lease_at_a_time(tmp_path: Path) -> None:
    inside, most, done = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, done
        while done < 20:
            try:
                lease = acquire(str(tmp_path), None)
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


def test_a_lease_in_a_bucket_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match="Set MARIN_PREFIX to a folder"):
        acquire("gs://bucket/a", None)

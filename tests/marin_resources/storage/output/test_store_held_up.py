"""A process that is paused in the middle of the protocol, and continues after another has taken over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from marin_resources.storage import fault_points
from marin_resources.storage.files import remove, write_bytes
from marin_resources.storage.lease import lease
from marin_resources.storage.lease.protocol import LeaseLostError
from marin_resources.storage.manifest.manifest import read_manifest, take_manifest
from marin_resources.storage.output import attempts, status
from marin_resources.storage.output.store import AlreadyDoneError, Claim, Store
from marin_resources.storage.paths import is_local, join
from marin_resources.types.output import Output, Status

X = Output(name="raw/x", version="abc123", identity="a" * 64)
DIE = """
import sys
from marin_resources.types.output import Output
from marin_resources.storage.output.store import Store
output = Output(name="raw/x", version="abc123", identity="a" * 64)
Store(sys.argv[1]).claim(output, attempt=int(sys.argv[2]), resumable=False, run_id=None)
"""


@pytest.fixture
def store(any_prefix: str) -> Store:
    return Store(any_prefix)


@pytest.fixture
def path(store: Store) -> str:
    return store.locate(X)


def claim(store: Store, attempt: int, stale: str | None = None) -> Claim:
    return store.claim(X, attempt=attempt, resumable=False, run_id=None, stale_lease=stale)


def overtake(store: Store, attempt: int) -> None:
    """Complete the output like a process that takes its holder for dead. On a disk the lock's file is removed first."""
    path = store.locate(X)
    holder = lease.holder_of(path)
    if is_local(path):
        remove(join(path, lease.NAME))
    newer = claim(store, attempt, holder.generation if holder else None)
    write_bytes(join(path, "data.txt"), b"newer", replace=False)
    store.publish(newer, {}, {"by": attempt})


def at_point(monkeypatch: pytest.MonkeyPatch, point: str, act: Callable[[], None]) -> None:
    """Call a function when a fault point is reached for the first time."""
    left = [act]
    monkeypatch.setattr(fault_points, "reach", lambda name: left.pop()() if left and name == point else None)


def require_complete(store: Store, by: int) -> None:
    seen = store.look([X])[X]
    assert (seen.status, seen.result, seen.holder) == (Status.SUCCESS, {"by": by}, None)
    assert read_manifest(seen.path) == take_manifest(seen.path)
    assert read_manifest(seen.path).files == (("data.txt", 5),)  # type: ignore[union-attr]


def die_in_claim(store: Store, attempt: int, point: str) -> None:
    env = {**os.environ, fault_points.VARIABLE: point}
    died = subprocess.run([sys.executable, "-c", DIE, store.prefix, str(attempt)], check=False, env=env)
    assert died.returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", ["commit claimed", "attempt marked"])
def test_a_claimant_does_not_undo_what_a_newer_one_has_completed(
    store: Store, path: str, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Neither its SUCCESS, nor its data, which could look like leftovers of an earlier attempt."""
    first = claim(store, 1)
    write_bytes(join(path, "data.txt"), b"old")
    first.lease.release()
    at_point(monkeypatch, point, lambda: overtake(store, 3))
    with pytest.raises((AlreadyDoneError, LeaseLostError)):
        claim(store, 2)
    require_complete(store, by=3)


def test_marking_an_attempt_as_stopped_does_not_undo_what_a_newer_one_has_completed(
    store: Store, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(store, 1).lease.release()
    real = status.replace_status

    def held_up(output_path: str, word: Status, expected: str | None) -> None:
        monkeypatch.setattr(status, "replace_status", real)
        overtake(store, 2)
        real(output_path, word, expected)

    monkeypatch.setattr(status, "replace_status", held_up)
    store.mark_stopped(X, 1, "its worker died")
    require_complete(store, by=2)


@pytest.mark.parametrize("point", ["lease taken", "commit claimed", "attempt marked"])
def test_in_a_bucket_a_worker_that_died_before_status_running_is_seen_as_the_holder(
    gcs_prefix: str, point: str
) -> None:
    """Otherwise no run would watch its lease become stale, and none could ever claim the output."""
    store = Store(gcs_prefix)
    die_in_claim(store, 1, point)
    seen = store.look([X])[X]
    assert seen.status is None
    assert seen.holder is not None
    overtake(store, attempts.latest_attempt(seen.path) + 1)


def test_an_attempt_that_died_before_its_mark_is_marked_as_stopped(store: Store, path: str) -> None:
    claim(store, 1).lease.release()
    die_in_claim(store, 2, "commit claimed")
    store.mark_stopped(X, 2, "its worker died")
    seen = store.look([X])[X]
    assert (seen.status, seen.holder) == (Status.FAILED, None)
    overtake(store, 3)
    require_complete(store, by=3)

"""The log of an attempt in a bucket: followed while it grows, whole at the end; its errors end no step."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import object_stores
import pytest
from running import wait_until

from marin_resources.ray_tpu.log import attempt_log
from marin_resources.ray_tpu.log.attempt_log import LogFollower
from marin_resources.ray_tpu.log.spool import spool_of, upload_spool
from marin_resources.storage.files import exists, read_from
from marin_resources.storage.paths import join

WORKER = """
import subprocess, sys
from marin_resources.ray_tpu.log import spool as log_spool
from marin_resources.ray_tpu.log.attempt_log import join_output, redirect_output
log_spool.FIRST_UPLOAD_S = 0.05
with redirect_output(sys.argv[1]):
    subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1]], check=True)
    for line in sys.stdin:
        print("told", line, end="", flush=True)
"""


SHARD = """
import sys
from marin_resources.ray_tpu.log.attempt_log import join_output
with join_output(sys.argv[1]):
    print("from a shard")
"""


@pytest.fixture(autouse=True)
def _spools_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(params=["gcs", "s3"])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """A log in a bucket."""
    prefix = object_stores.gcs_prefix() if request.param == "gcs" else object_stores.s3_prefix()
    yield join(prefix, ".marin/attempts/1.log")
    object_stores.forget(prefix)


@contextmanager
def worker(path: str, *, killed: bool = False) -> Iterator[Callable[[str], None]]:
    """Run a process that writes its input lines into its log. It succeeds at the end of the block, or is killed."""
    process = subprocess.Popen([sys.executable, "-c", WORKER, path, SHARD], stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None

    def tell(line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()

    try:
        yield tell
        if not killed:
            process.stdin.close()
            assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdin.close()


def follow_until(follower: LogFollower, lines: list[str], last: str) -> None:
    def found() -> bool:
        follower.poll()
        return last in lines

    wait_until(found, repr(last))


def follow_three_lines(path: str, follower: LogFollower, lines: list[str]) -> None:
    """Follow a worker that prints one, two, and at its end three."""
    with worker(path) as tell:
        for line in ("one", "two"):
            tell(line)
            follow_until(follower, lines, f"told {line}")
        tell("three")


def test_on_the_workers_machine_lines_come_as_they_are_written_and_each_once(path: str) -> None:
    lines: list[str] = []
    follower = LogFollower(path, lines.append)
    follow_three_lines(path, follower, lines)
    assert not os.path.exists(spool_of(path))
    follower.finish()  # what is left is in the bucket now
    assert lines == ["from a shard", "told one", "told two", "told three"]
    assert read_from(path, 0).decode().splitlines() == lines


def test_on_another_machine_lines_come_from_the_bucket_while_the_worker_runs(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_log, "BUCKET_POLL_S", 0.02)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "another machine's"))
    lines: list[str] = []
    follower = LogFollower(path, lines.append)
    follow_three_lines(path, follower, lines)
    follower.finish()
    printed = [line for line in lines if " INFO " not in line]  # what the store's client logs is there too
    assert printed == ["from a shard", "told one", "told two", "told three"]


def test_the_bucket_is_not_asked_each_time(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_log, "BUCKET_POLL_S", 60.0)
    lines: list[str] = []
    follower = LogFollower(path, lines.append)
    follower.poll()
    with worker(path) as tell:
        tell("one")
    for _ in range(20):
        follower.poll()
    assert lines == []
    follower.finish()
    assert lines == ["from a shard", "told one"]


def test_what_a_killed_worker_has_left_is_uploaded_by_whoever_waited_for_it(path: str) -> None:
    lines: list[str] = []
    follower = LogFollower(path, lines.append)
    with worker(path, killed=True) as tell:
        tell("last words")
        follow_until(follower, lines, "told last words")
    upload_spool(path)
    assert read_from(path, 0) == b"from a shard\ntold last words\n"
    assert not os.path.exists(spool_of(path))
    upload_spool(path)


def test_a_bucket_that_takes_no_log_is_reported_and_ends_no_step(tmp_path: Path) -> None:
    path = object_stores.gcs_prefix().replace("gs://", "gs://not-") + "/1.log"
    code = "import sys; from marin_resources.ray_tpu.log.attempt_log import redirect_output\n"
    code += "with redirect_output(sys.argv[1]): print('from the step')\nprint('the step is done')"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "the step is done\n")
    [told] = done.stderr.splitlines()
    assert told.startswith(f"The log {path!r} cannot be uploaded (UnavailableError: ")
    assert told.endswith(f"All of it is in {spool_of(path)!r}.")
    assert Path(spool_of(path)).read_text().splitlines() == ["from the step", told]


def test_logs_on_their_way_are_this_users_alone(path: str, tmp_path: Path) -> None:
    with worker(path):
        pass
    folder = os.path.dirname(spool_of(path))
    assert os.stat(folder).st_mode & 0o777 == 0o700
    os.chmod(folder, 0o755)
    done = subprocess.run(
        [sys.executable, "-c", WORKER, path, SHARD], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert f"PermissionError: The folder {folder!r} holds logs" in done.stderr


def test_a_spool_that_was_forgotten_for_a_week_is_removed(path: str) -> None:
    with worker(path):
        pass
    forgotten, other = (Path(os.path.dirname(spool_of(path)), name) for name in ("a.log", "b.log"))
    for spool, age_days in ((forgotten, 8), (other, 6)):
        spool.touch()
        os.utime(spool, (time.time() - age_days * 86400,) * 2)
    with worker(path):
        pass
    assert (forgotten.exists(), other.exists()) == (False, True)


def test_a_shard_on_another_machine_leaves_the_log_alone(path: str) -> None:
    done = subprocess.run([sys.executable, "-c", SHARD, path], capture_output=True, text=True, check=True)
    assert done.stdout == "from a shard\n"
    assert not exists(path)

"""What runs print is in the bucket, and on this machine while the bucket is away; the run goes on."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
from bucket_for_tests import BucketForTests
from dagster._core.storage.compute_log_manager import CapturedLogData, ComputeIOType
from running import ROOT, run_job, wait_until

from marin_resources.dagster_fixes.compute_logs import objects
from marin_resources.dagster_fixes.compute_logs.manager import StoredComputeLogManager
from marin_resources.orchestrator.executor import marin_executor

WAIT_S = 1.0
"""In place of the 5 s that the end of a run waits."""
SLACK_S = 4.0
"""What else an end of a run takes on a busy machine."""
KEY = ["a-run", "compute_logs", "abc"]
CRASH = """
import os, sys
sys.path[:0] = [{root!r}, {support!r}]
from marin_resources.dagster_fixes.compute_logs.manager import StoredComputeLogManager

manager = StoredComputeLogManager({prefix!r}, {local!r})
with manager.capture_logs({key!r}):
    print("the last words", flush=True)
    os.write(3, b"printed")
    sys.stdin.read()
"""

LARGE = """
import os, resource, sys
sys.path.insert(0, {root!r})
from marin_resources.dagster_fixes.compute_logs.manager import StoredComputeLogManager

def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

manager = StoredComputeLogManager({prefix!r}, {local!r})
def leave(name, mib):
    with open(manager.local_manager.get_captured_local_path([name], "out"), "wb") as file:
        for _ in range(mib):
            file.write(b"x" * 1024**2)
    manager._mark_ended([name])

os.makedirs({local!r})
leave("small", 1)
assert manager.store_what_is_left() == 1  # the client is imported
before_mb = peak_mb()
leave("large", 200)
assert manager.store_what_is_left() == 1
assert manager.waiting() == 0
end = manager.get_log_data(["large"], f"{{200 * 1024**2 - 5}}:0", max_bytes=1024**2)
assert end.stdout == b"xxxxx", end
print(peak_mb() - before_mb)
"""


def manager_of(prefix: str, local: Path, interval_s: float = 0.1) -> StoredComputeLogManager:
    return StoredComputeLogManager(prefix, str(local), interval_s)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here"


@pytest.fixture
def away_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that has not answered is asked again soon, and does not get long."""
    monkeypatch.setattr(objects, "AWAY_S", 0.2)
    monkeypatch.setattr(objects, "REQUEST_S", 1.0)


@contextmanager
def home_with(prefix: str, folder: Path) -> Iterator[dg.DagsterInstance]:
    """An instance of Dagster on a machine of its own, with the section of the deployment's dagster.yaml."""
    folder.mkdir()
    text = (ROOT / "deploy/vm/dagster.yaml").read_text()
    [section] = [part for part in text.split("\n#") if "\ncompute_logs:" in part]
    rest = text[text.index("\ncompute_logs:") :].splitlines()[1:]
    end = next(n for n, line in enumerate(rest[1:], 1) if line and not line.startswith((" ", "#")))
    lines = [line.replace("upload_interval_s: 15", "upload_interval_s: 0.1") for line in rest[:end]]
    assert "StoredComputeLogManager" in section
    (folder / "dagster.yaml").write_text("\n".join(["telemetry: {enabled: false}", *lines, ""]))
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield instance


def run_printing(instance: dg.DagsterInstance, *acts: Callable[[], object]) -> tuple[list[str], float]:
    """A run whose step prints a line after each act. Its log's key, and the seconds that it took."""

    @dg.op
    async def speak() -> None:
        for number, act in enumerate(acts):
            await asyncio.to_thread(act)
            print(f"line {number}", flush=True)

    @dg.job(executor_def=marin_executor)
    def speaking() -> None:
        speak()

    began_s = time.monotonic()
    result = run_job(dg.Definitions(jobs=[speaking]), "speaking", instance)
    took_s = time.monotonic() - began_s
    assert result.success
    [entry] = instance.all_logs(result.run_id, of_type=dg.DagsterEventType.LOGS_CAPTURED)
    event = entry.get_dagster_event().logs_captured_data
    return list(instance.compute_log_manager.build_log_key_for_run(result.run_id, event.file_key)), took_s


def nothing() -> None:
    pass


def lines(manager: StoredComputeLogManager, key: Sequence[str]) -> list[str]:
    data = manager.get_log_data(key)
    return (data.stdout or b"").decode().splitlines()


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "here"))
    return tmp_path / "here"


def test_another_machine_shows_the_log_of_a_run_that_has_ended(
    any_prefix: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_PREFIX", any_prefix)
    with home_with(any_prefix, home) as instance:
        key, _ = run_printing(instance, nothing, nothing)
        assert files_of(home / "storage") == [], "nothing is left on the machine of the run"
    there = manager_of(any_prefix, tmp_path / "there")
    assert lines(there, key) == ["line 0", "line 1"]
    assert there.is_capture_complete(key)
    first = there.get_log_data(key, max_bytes=7)
    assert first.stdout == b"line 0\n"
    assert there.get_log_data(key, first.cursor, max_bytes=7).stdout == b"line 1\n"
    metadata = there.get_log_metadata(key)
    assert metadata.stdout_location == f"{any_prefix}/.marin/logs/{'/'.join(key)}.out"
    assert metadata.stdout_download_url == f"/logs/{'/'.join(key)}/out", "of the webserver, and not a signed one"


def test_a_log_is_no_data_of_the_prefix(gcs_bucket: BucketForTests, here: Path) -> None:
    from marin_resources.storage.files import list_files, write_bytes

    write_bytes(f"{gcs_bucket.prefix}/a-step/data.txt", b"data")
    with manager_of(gcs_bucket.prefix, here).capture_logs(KEY):
        print("a line")
    assert any(".marin/logs/a-run" in request for request in gcs_bucket.requests())
    assert list_files(gcs_bucket.prefix) == [f"{gcs_bucket.prefix}/a-step/data.txt"]


def test_a_log_that_grows_is_told_to_who_has_it_open_on_another_machine(
    gcs_bucket: BucketForTests, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marin_resources.dagster_fixes.compute_logs.manager.POLL_S", 0.1)
    manager, there = manager_of(gcs_bucket.prefix, here), manager_of(gcs_bucket.prefix, tmp_path / "there")
    told: list[bytes] = []

    def tell(data: CapturedLogData) -> None:
        told.append(data.stdout or b"")

    with manager.capture_logs(KEY):
        subscription = there.subscribe(KEY)(tell)
        for line in ("one", "two"):
            print(line, flush=True)
            wait_until(lambda line=line: line.encode() in b"".join(told), line)
        assert not there.is_capture_complete(KEY)
        assert lines(manager, KEY) == ["one", "two"], "this machine shows the file"
    wait_until(lambda: subscription.is_complete, "its end")
    assert b"".join(told) == b"one\ntwo\n"
    there.dispose()


FAULTS: dict[str, Callable[[BucketForTests], None]] = {
    "refuses": lambda bucket: bucket.drop(times=None),
    "503": lambda bucket: bucket.fail(status=503, times=None),
    "forbids": lambda bucket: bucket.fail(status=403, times=None),
    "hangs": lambda bucket: bucket.delay(600, times=None),
}
SHORT = [("start", "refuses"), ("middle", "503"), ("end", "hangs")]
CASES = [
    pytest.param(moment, fault, marks=[] if (moment, fault) in SHORT else [pytest.mark.long])
    for moment in ("start", "middle", "end")
    for fault in FAULTS
]


@pytest.mark.parametrize(("moment", "fault"), CASES)
def test_a_bucket_that_is_away_costs_a_run_a_short_wait_and_no_line_of_its_log(
    gcs_bucket: BucketForTests,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    away_shortly: None,
    moment: str,
    fault: str,
) -> None:
    monkeypatch.setenv("MARIN_PREFIX", gcs_bucket.prefix)
    monkeypatch.setattr("marin_resources.dagster_fixes.compute_logs.manager.END_WAIT_S", WAIT_S)

    def strike() -> None:
        FAULTS[fault](gcs_bucket)

    def told() -> bool:
        return any("Logs are kept in" in message for message in caplog.messages)

    acts: dict[str, list[Callable[[], object]]] = {
        "start": [strike, nothing],
        "middle": [strike, nothing, lambda: wait_until(told, "the warning")],
        "end": [nothing, lambda: wait_until(lambda: gcs_bucket.requests(), "a first upload"), strike],
    }
    with home_with(gcs_bucket.prefix, home) as instance:
        manager = instance.compute_log_manager
        assert isinstance(manager, StoredComputeLogManager)
        with caplog.at_level(logging.WARNING):
            key, took_s = run_printing(instance, *acts[moment])
        if moment != "middle":
            assert took_s < WAIT_S + SLACK_S
        warnings = [message for message in caplog.messages if "Logs are kept in" in message]
        assert len(warnings) == 1, caplog.messages
        assert str(home / "storage") in warnings[0]
        expected = [f"line {number}" for number in range(len(acts[moment]))]
        assert lines(manager, key) == expected, "the UI of this machine shows it"
        assert manager.waiting() == 1
        gcs_bucket.calm()
        assert manager.store_what_is_left() == 1
        assert files_of(home / "storage") == []
    assert lines(manager_of(gcs_bucket.prefix, tmp_path / "there"), key) == expected


def test_what_an_ended_process_has_left_is_stored_by_the_next_one(
    gcs_bucket: BucketForTests, here: Path, tmp_path: Path, away_shortly: None
) -> None:
    gcs_bucket.fail(status=503, times=None)
    with manager_of(gcs_bucket.prefix, here).capture_logs(KEY):
        print("the last words", flush=True)
    gcs_bucket.calm()
    next_one = manager_of(gcs_bucket.prefix, here)
    assert next_one.waiting() == 1
    assert lines(next_one, KEY) == ["the last words"]
    with next_one.capture_logs(["another", "compute_logs", "xyz"]):
        wait_until(lambda: next_one.waiting() == 0, "the upload of what is left")
    assert files_of(here) == []
    there = manager_of(gcs_bucket.prefix, tmp_path / "there")
    assert lines(there, KEY) == ["the last words"]
    assert there.is_capture_complete(KEY), "nobody prints to it any more"


def test_a_killed_process_leaves_its_log_on_its_machine(gcs_bucket: BucketForTests, here: Path) -> None:
    crash_in_capture(gcs_bucket.prefix, here)
    next_one = manager_of(gcs_bucket.prefix, here)
    assert next_one.store_what_is_left() == 0
    assert lines(next_one, KEY) == ["the last words"]


def test_a_step_that_raises_has_its_whole_log_stored(gcs_bucket: BucketForTests, here: Path, tmp_path: Path) -> None:
    def fail() -> None:
        print("the last words", flush=True)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), manager_of(gcs_bucket.prefix, here).capture_logs(KEY):
        fail()
    there = manager_of(gcs_bucket.prefix, tmp_path / "there")
    assert lines(there, KEY) == ["the last words"]
    assert there.is_capture_complete(KEY)


def test_the_log_of_a_process_that_lives_is_left_to_it(gcs_bucket: BucketForTests, here: Path) -> None:
    manager, other = manager_of(gcs_bucket.prefix, here), manager_of(gcs_bucket.prefix, here)
    with manager.capture_logs(KEY):
        print("one")
        assert other.store_what_is_left(60) == 0
        print("two")
    assert lines(other, KEY) == ["one", "two"]


def crash_in_capture(prefix: str, local: Path) -> None:
    read, write = os.pipe()
    code = CRASH.format(root=str(ROOT), support=str(ROOT / "tests/support"), prefix=prefix, local=str(local), key=KEY)
    process = subprocess.Popen(
        [sys.executable, "-c", f"import os; os.dup2({write}, 3)\n{code}"], pass_fds=[write], stdin=subprocess.PIPE
    )
    os.close(write)
    assert os.read(read, 7) == b"printed"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    os.close(read)


def test_the_log_of_a_tick_is_stored_and_one_without_a_line_is_not(
    gcs_bucket: BucketForTests, here: Path, tmp_path: Path
) -> None:
    manager = manager_of(gcs_bucket.prefix, here)
    with manager.open_log_stream(["ticks", "1"], ComputeIOType.STDERR) as stream:
        assert stream is not None
        stream.write("a tick\n")
    with manager.open_log_stream(["ticks", "2"], ComputeIOType.STDERR):
        pass
    wait_until(lambda: manager.waiting() == 0, "the upload")
    there = manager_of(gcs_bucket.prefix, tmp_path / "there")
    assert there.get_log_data(["ticks", "1"]).stderr == b"a tick\n"
    assert there.get_log_keys_for_log_key_prefix(["ticks"], ComputeIOType.STDERR) == [["ticks", "1"]]
    assert not any("ticks/2" in request for request in gcs_bucket.requests() if request.startswith("POST"))


def test_a_log_that_cannot_be_read_now_is_said_in_its_place(
    gcs_bucket: BucketForTests, here: Path, tmp_path: Path, away_shortly: None
) -> None:
    with manager_of(gcs_bucket.prefix, here).capture_logs(KEY):
        print("one", flush=True)
    there = manager_of(gcs_bucket.prefix, tmp_path / "there")
    gcs_bucket.delay(600, times=None)
    began_s = time.monotonic()
    found = there.get_log_data(KEY)
    assert found.stderr is not None
    assert b"This log cannot be shown now: 'gs://" in found.stderr
    assert not there.is_capture_complete(KEY)
    assert time.monotonic() - began_s < 10
    gcs_bucket.calm()
    wait_until(lambda: there.get_log_data(KEY, found.cursor).stdout == b"one\n", "the log")


@pytest.mark.parametrize("what", [{"log_key": KEY}, {"prefix": KEY[:1]}], ids=["a log", "all of a run"])
def test_deleted_logs_are_gone_here_and_there(disk_or_gcs_prefix: str, here: Path, what: dict[str, list[str]]) -> None:
    manager = manager_of(disk_or_gcs_prefix, here)
    for key in (KEY, ["a-run-2", *KEY[1:]]):
        with manager.capture_logs(key):
            print("one", flush=True)
    manager.delete_logs(**what)
    assert manager.get_log_data(KEY).stdout is None
    assert not manager.is_capture_complete(KEY)
    assert lines(manager, ["a-run-2", *KEY[1:]]) == ["one"]


@pytest.mark.long
def test_to_delete_a_log_while_the_bucket_is_away_is_a_line(
    gcs_bucket: BucketForTests, here: Path, away_shortly: None, caplog: pytest.LogCaptureFixture
) -> None:
    manager = manager_of(gcs_bucket.prefix, here)
    gcs_bucket.fail(status=503, times=None)
    manager.delete_logs(log_key=KEY)
    manager.delete_logs(prefix=KEY[:1])
    assert sum("is deleted on this machine, and not in the store" in line for line in caplog.messages) == 2


def test_the_download_of_the_ui_is_a_copy_that_does_not_stay(
    gcs_bucket: BucketForTests, here: Path, tmp_path: Path
) -> None:
    with manager_of(gcs_bucket.prefix, here).capture_logs(KEY):
        print("one", flush=True)
    there = manager_of(gcs_bucket.prefix, tmp_path / "there")
    there.download_from_cloud_storage(KEY, ComputeIOType.STDOUT)
    [copy] = (tmp_path / "there").rglob("*.out")
    assert copy.read_text() == "one\n"
    there.dispose()
    assert files_of(tmp_path / "there") == []


def test_a_name_cannot_leave_the_folder_of_logs(tmp_path: Path, here: Path) -> None:
    (tmp_path / "secret.out").write_text("secret")
    with pytest.raises(ValueError, match="Invalid path"):
        manager_of(str(tmp_path / "prefix"), here).get_log_data(["..", "..", "..", "secret"])


@pytest.mark.long
def test_a_log_of_200_mb_is_never_whole_in_memory(gcs_bucket: BucketForTests, here: Path) -> None:
    code = LARGE.format(root=str(ROOT), prefix=gcs_bucket.prefix, local=str(here))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr
    assert float(ended.stdout.split()[-1]) < 100


def test_a_process_has_no_thread_of_uploads_when_nothing_is_left_to_store(
    gcs_bucket: BucketForTests, here: Path
) -> None:
    with manager_of(gcs_bucket.prefix, here).capture_logs(KEY):
        print("one")
    wait_until(lambda: all("uploads of logs" not in one.name for one in threading.enumerate()), "its end")

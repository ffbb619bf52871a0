"""The pump hides secrets, prints the same bytes to the job, loses nothing and never blocks the worker."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from running import wait_until

HEAD = """
import os, signal, subprocess, sys, time
from marin_resources.ray_tpu.log.attempt_log import is_pumped, join_output, redirect_output
from marin_resources.ray_tpu.sidecar import sidecar_pids
path, told = sys.argv[1], sys.stdin
def tell(text):
    os.write(int(sys.argv[2]), f"{text}\\n".encode())
"""


class Worker:
    """A process that runs `code` with its log at `path`, and passes lines between the code and the test."""

    def __init__(self, path: Path, code: str, stdout: int | None = None) -> None:
        told, tell = os.pipe()
        arguments = [sys.executable, "-c", HEAD + code, str(path), str(tell)]
        self.process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if stdout is None else stdout,
            pass_fds=[tell],
            env={**os.environ, "HF_TOKEN": "hf_secret"},
        )
        os.close(tell)
        self._told = os.fdopen(told)

    def told(self) -> str:
        return self._told.readline().rstrip("\n")

    def tell(self, text: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()

    def output(self) -> str:
        """All of its stdout."""
        assert self.process.stdout is not None
        return self.process.stdout.read().decode()


@contextmanager
def worker(path: Path, code: str, stdout: int | None = None) -> Iterator[Worker]:
    one = Worker(path, code, stdout)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.communicate()
        one._told.close()


def until_gone(pid: int) -> None:
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=20)
    assert not psutil.pid_exists(pid)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "attempts/3.log"


def test_secrets_are_hidden_in_the_log_and_in_the_jobs_output_which_is_the_same_after_a_line_that_says_so(
    path: Path,
) -> None:
    code = """
print("set-up")
with redirect_output(path, secrets=["hf_secret"], tee=True):
    assert is_pumped()
    print("token hf_secret", flush=True)
    sys.stderr.write("\\r10%\\r100%\\n")
    subprocess.run(["sh", "-c", r"printf 'from a child: %s, hf_\\377' $HF_TOKEN"])
assert not is_pumped()
print("after hf_secret")
"""
    with worker(path, code) as one:
        output = one.output()
    log = "token ***\n100%\nfrom a child: ***, hf_\ufffd\n"
    assert path.read_text() == log
    assert output == f"set-up\n--- marin: attempt 3, its log is {path} ---\n{log}after hf_secret\n"


def test_nobody_on_the_machine_sees_the_secrets_of_a_pump(path: Path) -> None:
    code = """
with redirect_output(path, secrets=["hf_secret"]):
    tell(*sidecar_pids())
    told.readline()
"""
    with worker(path, code) as one:
        pump = psutil.Process(int(one.told()))
        wait_until(pump.cmdline, "the pump's program")  # a process that is being started has none
        seen = f"{pump.cmdline()} {pump.environ()} {[file.path for file in pump.open_files()]}"
        one.tell()
        assert one.process.wait(20) == 0
    assert "marin_resources.ray_tpu.log.pump" in seen
    assert str(path) in seen
    assert "hf_secret" not in seen
    assert "6866" not in seen


def test_what_a_worker_has_printed_before_it_was_killed_is_in_the_log(path: Path) -> None:
    code = """
with redirect_output(path, secrets=["hf_secret"]):
    os.kill(*sidecar_pids(), signal.SIGSTOP)
    os.write(1, b"line\\n" * 10000 + b"last words")
    tell(*sidecar_pids())
    os.kill(os.getpid(), signal.SIGKILL)
"""
    with worker(path, code) as one:
        pump = int(one.told())
        assert one.process.wait(20) == -signal.SIGKILL
        os.kill(pump, signal.SIGCONT)
        until_gone(pump)
    assert path.read_bytes() == b"line\n" * 10000 + b"last words\n"


def test_a_pump_takes_no_signal_and_outlives_its_group(path: Path) -> None:
    code = """
signal.signal(signal.SIGTERM, lambda *_: None)
with redirect_output(path, tee=True):
    tell(*sidecar_pids())
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(*sidecar_pids(), sign)
    os.setpgid(0, 0)
    os.killpg(0, signal.SIGTERM)
    print("still here")
"""
    with worker(path, code) as one:
        assert one.output().endswith("still here\n")
        assert one.process.wait(20) == 0
    assert path.read_text() == "still here\n"


def test_the_last_words_of_a_worker_that_ends_itself_and_its_children_are_in_the_log(path: Path) -> None:
    code = """
from marin_resources.ray_tpu.worker.end_process import end_process
with redirect_output(path, secrets=["hf_secret"]):
    child = subprocess.Popen(["sleep", "60"])
    tell(*sidecar_pids())
    tell(child.pid)
    end_process(lambda: print("the lease was lost", flush=True), 5.0)
"""
    with worker(path, code) as one:
        pump, child = int(one.told()), int(one.told())
        assert one.process.wait(20) == -signal.SIGKILL
        until_gone(pump)
        until_gone(child)
    assert path.read_text() == "the lease was lost\n"


@pytest.mark.long
def test_a_daemon_that_holds_the_pipe_does_not_keep_the_attempt_from_its_end_and_is_in_the_log_later(
    path: Path,
) -> None:
    code = """
with redirect_output(path, secrets=["hf_secret"]):
    read, write = os.pipe()
    subprocess.Popen(["sh", "-c", f"read line <&{read}; echo later"], pass_fds=[read], start_new_session=True)
    print("the step is done")
    tell(*sidecar_pids())
tell("ended")
told.readline()
os.write(write, b"\\n")
"""
    with worker(path, code) as one:
        pump, started = int(one.told()), time.monotonic()
        assert one.told() == "ended"
        assert time.monotonic() - started < 10
        assert path.read_text() == "the step is done\n"
        one.tell()
        until_gone(pump)
    assert path.read_text() == "the step is done\nlater\n"


def test_a_full_disk_under_the_log_does_not_keep_lines_from_the_job_and_is_reported_when_there_is_room_again(
    path: Path,
) -> None:
    code = """
with redirect_output(path, tee=True):
    tell(*sidecar_pids())
    for line in told:
        print(line, end="", flush=True)
        if line == "end\\n":
            break
"""
    with worker(path, code) as one:
        pump = int(one.told())
        assert one.process.stdout is not None
        seen = [one.process.stdout.readline()]
        for room_bytes, line in ((9, "first"), (9, "second"), (resource.RLIM_INFINITY, "third")):
            resource.prlimit(pump, resource.RLIMIT_FSIZE, (room_bytes, resource.RLIM_INFINITY))
            one.tell(line)
            while seen[-1] != f"{line}\n".encode():
                seen.append(one.process.stdout.readline())
        one.tell("end")
        assert one.process.wait(20) == 0
    assert path.read_text() == "first\nsec\n--- marin: 4 bytes are missing here: File too large ---\nthird\nend\n"
    assert seen[1:3] == [b"first\n", b"second\n"]


@pytest.mark.long
@pytest.mark.parametrize("reader", ["gone", "asleep"])
def test_a_job_whose_output_nobody_takes_does_not_make_the_worker_wait(path: Path, reader: str) -> None:
    code = """
with redirect_output(path, tee=True):
    for number in range(40000):
        print("line", number)
tell("ended")
"""
    read, write = os.pipe()
    if reader == "gone":
        os.close(read)
    started = time.monotonic()
    with worker(path, code, stdout=write) as one:
        os.close(write)
        assert one.told() == "ended"
        assert time.monotonic() - started < 15
        assert one.process.wait(20) == 0
    if reader == "asleep":
        os.close(read)
    assert path.read_text().splitlines() == [f"line {number}" for number in range(40000)]


def test_what_shards_print_is_in_the_jobs_output_too_in_the_same_order_and_in_whole_lines(path: Path) -> None:
    shard = """
import sys
from marin_resources.ray_tpu.log.attempt_log import join_output
with join_output(sys.argv[1], pumped=True, secrets=sys.argv[2:]):
    for number in range(2000):
        sys.stdout.write(f"shard hf_secret\\r")
        sys.stdout.write(f"shard {number} of hf_secret\\n")
"""
    code = f"""
with redirect_output(path, secrets=["hf_secret"], tee=True):
    shards = [subprocess.Popen([sys.executable, "-c", {shard!r}, path, "hf_secret"]) for _ in range(2)]
    for number in range(2000):
        print("step", number, flush=True)
    assert [shard.wait() for shard in shards] == [0, 0]
"""
    with worker(path, code) as one:
        _, _, output = one.output().partition("---\n")
    assert output == path.read_text()
    lines = output.splitlines()
    assert [line for line in lines if line.startswith("step")] == [f"step {number}" for number in range(2000)]
    expected = sorted([f"shard {number} of ***" for number in range(2000)] * 2)
    assert sorted(line for line in lines if line.startswith("shard")) == expected


def test_a_shard_on_another_machine_prints_no_secret(path: Path) -> None:
    code = """
with join_output("gs://bucket/1.log", secrets=["hf_secret"]):
    print("hf_secret from a shard")
"""
    with worker(path, code) as one:
        assert one.output() == "*** from a shard\n"


def test_a_log_that_cannot_be_written_is_reported_at_once(path: Path) -> None:
    path.mkdir(parents=True)
    code = "with redirect_output(path, tee=True): pass"
    done = subprocess.run([sys.executable, "-c", HEAD + code, str(path), "1"], capture_output=True, text=True)
    assert "IsADirectoryError" in done.stderr
    assert done.stdout == ""

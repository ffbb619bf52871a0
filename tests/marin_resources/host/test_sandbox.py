"""Hostile programs find nothing, keep nothing and stop nothing; honest ones run."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from marin_resources.host.denied_calls import filter_of
from marin_resources.host.sandbox import Limits, Outcome, SandboxError, failure_of, outcome_of, require_sandbox

pytestmark = pytest.mark.usefixtures("sandbox")

OF_LIBC = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"


@pytest.mark.parametrize(
    "program",
    [
        "assert sum(range(5)) == 10",
        "print('x' * 2**20)\nimport sys\nassert sys.stdin.read() == ''",
        "if __name__ == '__main__':\n    assert len(__import__('random').SystemRandom().randbytes(9)) == 9",
        "import threading\nlock = threading.Lock()\nthreading.Thread(target=lock.acquire).start()",
        "import numpy as np\nassert (np.ones((300, 300)) @ np.ones((300, 300))).sum() == 300**3",
    ],
)
def test_an_honest_program_runs_to_its_end(program: str) -> None:
    assert failure_of(program) is None


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("def f(:", "SyntaxError"),
        ("assert 1 == 2, 'no'", "AssertionError: no"),
        ("raise ValueError('ä' * 1000 + chr(0xD800))", "ValueError: äää"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("import os; os._exit(0)", "it ended early, with status 0"),
        ("print('0' * 32, flush=True); import os; os.write(1, b'0' * 32); os._exit(0)", "it ended early"),
        ("def f(): f()\nf()", "RecursionError"),
        ("x = bytearray(2**33)", "MemoryError"),
    ],
)
def test_a_program_that_does_not_run_to_its_end_fails_with_the_reason(program: str, failure: str) -> None:
    assert str(failure_of(program)).startswith(failure)


def test_the_text_that_a_program_leaves_is_returned_if_it_ran_to_its_end() -> None:
    assert outcome_of("ANSWER = 'ä' + str(1 + 2)") == Outcome(answer="ä3")
    assert outcome_of("ANSWER = '3'\nassert False") == Outcome(failure="AssertionError: ")
    assert outcome_of("ANSWER = 'x' * 10**7").answer.strip("x") == ""


@pytest.mark.parametrize(
    "program",
    [
        "import socket; socket.create_connection(('1.1.1.1', 53), 2)",
        "import os; os.fork()",
        "import subprocess; subprocess.run(['/bin/true'])",
        f"{OF_LIBC}if libc.unshare(0x10000000): raise OSError(ctypes.get_errno())",
        f"{OF_LIBC}if libc.ptrace(16, 1, 0, 0): raise OSError(ctypes.get_errno())",
        f"{OF_LIBC}if libc.shmget(0, 4096, 0o1600) < 0: raise OSError(ctypes.get_errno())",
        "open('/proc/1/environ').read()",
        "open('/proc/sys/kernel/core_pattern', 'w')",
        "import os; os.chmod('/dev/null', 0)",
        "import os; os.chmod('/usr', 0)",
        *(f"open('{folder}/x', 'w')" for folder in ("", "/tmp", "/dev/shm", "/usr", "/var/tmp", "/root")),
        "import tempfile; tempfile.mkstemp()",
        "open('/etc/passwd')",
    ],
)
def test_a_program_has_no_network_no_process_and_no_file_to_write(program: str) -> None:
    assert "Error: " in str(failure_of(program))


def test_a_program_sees_neither_files_nor_variables_nor_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text("secret")
    for place in (tmp_path / "key", Path(__file__)):
        assert "FileNotFoundError" in str(failure_of(f"open({str(place)!r})"))
    seen = str(failure_of("import os; raise Exception(sorted(os.environ))"))
    assert seen == "Exception: ['LC_CTYPE', 'PWD']"
    seen = str(failure_of(f"import os; os.kill({os.getpid()}, 0)"))
    assert seen.startswith("ProcessLookupError")


def test_a_program_that_computes_or_waits_is_ended() -> None:
    limits = Limits(cpu_s=1, wall_s=20)
    for_ever = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert failure_of(for_ever, limits) == "it took more than 1 s of CPU time"
    assert failure_of("import time; time.sleep(99)", Limits(wall_s=0.5)) == "it took more than 0.5 s"


def test_without_bubblewrap_a_sentence_has_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=r"'bwrap' is not installed. Install it, with 'apt-get install bubblewrap'"):
        require_sandbox()


def test_a_sandbox_that_cannot_be_made_is_no_failure_of_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refuses = tmp_path / "bwrap"
    refuses.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refuses.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(SandboxError, match=r"create new namespace. It needs user namespaces, which some containers"):
        failure_of("pass")


def test_each_machine_has_a_filter_whose_jumps_end_in_it() -> None:
    for machine in ("x86_64", "aarch64"):
        filter_bytes = filter_of(machine)
        assert filter_bytes
        lines = list(struct.iter_unpack("HBBI", filter_bytes))
        jumps = [(index, true, false) for index, (code, true, false, _) in enumerate(lines) if code not in (0x20, 0x06)]
        assert all(index + 1 + max(true, false) < len(lines) for index, true, false in jumps)
        assert [code for code, *_ in lines[-3:]] == [0x06] * 3
    assert filter_of("riscv64") is None

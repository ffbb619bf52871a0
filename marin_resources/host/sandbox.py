"""Run Python programs that are not trusted, such as those that a model writes, in bubblewrap.

A program has no network, sees the system's folders and those of this Python read-only, and nothing else of the machine:
no home, no credentials, no variables, no `/proc` (where root's processes set the kernel, and read bubblewrap's
variables), no `/dev` (whose modes root's processes change). It writes nowhere, starts no process, and has limits of
CPU time and memory.

A program and its tests run in one process, as HumanEval's do: a program that is written to cheat can pass them, by an
object that equals all, or by the sandbox's own answer. It cannot by printing, nor by an early end.
https://github.com/containers/bubblewrap
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from marin_resources.host.denied_calls import filter_of
from marin_resources.types.errors import MarinError

FOLDERS = ("/usr", "/bin", "/lib", "/lib64")
"""Folders of the system, as far as they exist, beside those of this Python."""
ANSWER_BYTES = 2**16
REMEDY = "It needs user namespaces, which some containers forbid. Allow them there, or evaluate on another machine."
SHOWN = 200
"""Characters of an error."""
SIGNALLED = 128
"""A shell's exit status of a process that a signal ended, less its number."""

RUNNER = """
import io, json, os, resource, sys
class Sink(io.RawIOBase):
    def writable(self):
        return True
    def write(self, data):
        return len(data)
task = json.load(sys.stdin)
out, nothing = os.dup(1), os.memfd_create("nothing")
for stream in (0, 1, 2):
    os.dup2(nothing, stream)
sys.stdin, sys.stdout, sys.stderr = io.StringIO(), *(io.TextIOWrapper(Sink(), encoding="utf-8") for _ in range(2))
cpu_s = task["cpu_s"]
resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
for limit, value in (("AS", task["memory_bytes"]), ("FSIZE", task["answer_bytes"]), ("NOFILE", 256), ("CORE", 0)):
    resource.setrlimit(getattr(resource, "RLIMIT_" + limit), (value, value))
program, token, names = task.pop("program"), task.pop("token"), {"__name__": "__main__"}
try:
    exec(compile(program, "<program>", "exec"), names)
    end = "=" + str(names.get("ANSWER", ""))
except BaseException as error:
    end = f"!{type(error).__name__}: {error}"[:1000]
os.write(out, f"{token}{end}".encode(errors="replace")[: task["answer_bytes"]])
os._exit(0)
"""
"""Program of the sandboxed Python. Only a program that runs to its end makes it write the token with "=" behind."""


class SandboxError(MarinError):
    """This machine cannot run a program in a sandbox. The message names the remedy."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a program."""

    cpu_s: int = 3
    """CPU time, which does not depend on what else the machine runs. HumanEval's own limit (Chen et al. 2021)."""
    wall_s: float = 60.0
    """Time limit for a program that waits."""
    memory_bytes: int = 2**32


@dataclass(frozen=True, kw_only=True)
class Outcome:
    failure: str | None = None
    """Why the program did not run to its end."""
    answer: str = ""
    """The text that it left in ANSWER. It is the program's: believe nothing of it."""


def require_sandbox() -> None:
    """Raise SandboxError if no program can run here in a sandbox."""
    if failure := failure_of("pass"):
        raise SandboxError(f"bubblewrap cannot run a program on this machine: {failure}. {REMEDY}")


def failure_of(program: str, limits: Limits | None = None) -> str | None:
    """Run a Python program. Returns None if it ran to its end, else the reason in words: its error, or its limit.

    A program that ends early, by `sys.exit(0)` or `os._exit(0)`, did not run to its end. Raises SandboxError if
    bubblewrap is not installed, or cannot make the sandbox.
    """
    return outcome_of(program, limits).failure


def outcome_of(program: str, limits: Limits | None = None) -> Outcome:
    """Run a Python program as `failure_of`, whose variable ANSWER, a text of less than 64 KiB, is returned too."""
    limits = limits or Limits()
    token = secrets.token_hex(16)
    task = {
        "program": program,
        "token": token,
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_bytes,
        "answer_bytes": ANSWER_BYTES,
    }
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as denied:
        denied.write(_denied_calls())
        denied.seek(0)
        try:
            done = subprocess.run(
                _command(denied.fileno()),
                input=json.dumps(task).encode(),
                stdout=answer,
                stderr=errors,
                env={},  # a process in the sandbox can read bubblewrap's
                pass_fds=[denied.fileno()],
                timeout=limits.wall_s,
            )
        except subprocess.TimeoutExpired:
            return Outcome(failure=f"it took more than {limits.wall_s:g} s")
        answer.seek(0)
        text = answer.read(ANSWER_BYTES).decode(errors="replace")
        errors.seek(0)
        printed = errors.read(ANSWER_BYTES).decode(errors="replace").strip()
    if printed:  # by bubblewrap, or by Python before the program
        raise SandboxError(f"bubblewrap cannot run a program on this machine: {printed[-SHOWN:]}. {REMEDY}")
    _, written, end = text.rpartition(token)
    if written and end:
        return Outcome(answer=end[1:]) if end[0] == "=" else Outcome(failure=end[1 : SHOWN + 1])
    if done.returncode in (SIGNALLED + signal.SIGXCPU, SIGNALLED + signal.SIGKILL):
        return Outcome(failure=f"it took more than {limits.cpu_s} s of CPU time")
    return Outcome(failure=f"it ended early, with status {done.returncode}")


def _denied_calls() -> bytes:
    if (calls := filter_of(machine := os.uname().machine)) is None:
        raise SandboxError(
            f"This machine is of kind {machine!r}, expected x86_64 or aarch64, for which the sandbox of programs that "
            "are not trusted is written. Evaluate on another machine."
        )
    return calls


def _command(denied_calls: int) -> list[str]:
    if (bubblewrap := shutil.which("bwrap")) is None:
        raise SandboxError(
            "A program that is not trusted runs in bubblewrap, and 'bwrap' is not installed. Install it, with "
            "'apt-get install bubblewrap' or 'dnf install bubblewrap'."
        )
    folders = dict.fromkeys((*FOLDERS, sys.base_prefix, sys.prefix))
    bound = [word for folder in folders for word in ("--ro-bind-try", folder, folder)]
    apart = ["--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    limits = ["--chdir", "/", "--remount-ro", "/", "--seccomp", str(denied_calls)]
    return [bubblewrap, *apart, *bound, *limits, "--", sys.executable, "-I", "-c", RUNNER]

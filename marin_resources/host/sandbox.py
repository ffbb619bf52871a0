"""Run Python programs that are not trusted, such as those that a model writes, in bubblewrap.

A program has no network, sees the system's folders and those of this Python read-only, and nothing else of the machine:
no home, no credentials, no variables. It can write nowhere. Its CPU time, memory and number of processes are limited.
https://github.com/containers/bubblewrap
"""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from marin_resources.types.errors import MarinError

FOLDERS = ("/usr", "/bin", "/lib", "/lib64")
"""Folders of the system, as far as they exist, beside those of this Python."""
ANSWER_BYTES = 2**16
SHOWN = 200
"""Characters of an error."""
SIGNALLED = 128
"""A shell's exit status of a process that a signal ended, less its number."""

RUNNER = """
import json, os, resource, sys
task = json.load(sys.stdin)
out, null = os.dup(1), os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(null, stream)
cpu_s = task["cpu_s"]
for limit, value in (("CPU", cpu_s), ("AS", task["memory_bytes"]), ("NPROC", task["processes"]), ("CORE", 0)):
    most = value + 1 if limit == "CPU" else value
    resource.setrlimit(getattr(resource, "RLIMIT_" + limit), (value, most))
resource.setrlimit(resource.RLIMIT_FSIZE, (task["answer_bytes"],) * 2)
program, token = task.pop("program"), task.pop("token")
try:
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    end = ""
except BaseException as error:
    end = f"{type(error).__name__}: {error}"
os.write(out, f"{token}{end}".encode(errors="replace")[:1000])
os._exit(0)
"""
"""Program of the sandboxed Python. Only a program that runs to its end makes it write the token with nothing behind."""


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
    processes: int = 16
    """Processes and threads."""


def require_sandbox() -> None:
    """Raise SandboxError if no program can run here in a sandbox."""
    if failure := failure_of("pass"):
        raise SandboxError(
            f"bubblewrap cannot run a program on this machine: {failure}. It needs user namespaces, which some "
            "containers forbid. Allow them there, or evaluate on another machine."
        )


def failure_of(program: str, limits: Limits | None = None) -> str | None:
    """Run a Python program. Returns None if it ran to its end, else the reason in words: its error, or its limit.

    A program that ends early, by `sys.exit(0)` or `os._exit(0)`, did not run to its end. Raises SandboxError if
    bubblewrap is not installed.
    """
    limits = limits or Limits()
    token = secrets.token_hex(16)
    task = {
        "program": program,
        "token": token,
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_bytes,
        "processes": limits.processes,
        "answer_bytes": ANSWER_BYTES,
    }
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                _command(), input=json.dumps(task).encode(), stdout=answer, stderr=errors, timeout=limits.wall_s
            )
        except subprocess.TimeoutExpired:
            return f"it took more than {limits.wall_s:g} s"
        answer.seek(0)
        text = answer.read(ANSWER_BYTES).decode(errors="replace")
        errors.seek(0)
        printed = errors.read(ANSWER_BYTES).decode(errors="replace").strip()
    _, written, end = text.rpartition(token)
    if written:
        return end[:SHOWN] or None
    if done.returncode in (SIGNALLED + signal.SIGXCPU, SIGNALLED + signal.SIGKILL):
        return f"it took more than {limits.cpu_s} s of CPU time"
    return f"it ended early, with status {done.returncode}" + (f": {printed[-SHOWN:]}" if printed else "")


def _command() -> list[str]:
    if (bubblewrap := shutil.which("bwrap")) is None:
        raise SandboxError(
            "A program that is not trusted runs in bubblewrap, and 'bwrap' is not installed. Install it, with "
            "'apt-get install bubblewrap' or 'dnf install bubblewrap'."
        )
    folders = dict.fromkeys((*FOLDERS, sys.base_prefix, sys.prefix))
    bound = [word for folder in folders for word in ("--ro-bind-try", folder, folder)]
    apart = ["--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    unwritable = ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--chdir", "/", "--remount-ro", "/"]
    return [bubblewrap, *apart, *bound, *unwritable, "--", sys.executable, "-I", "-c", RUNNER]

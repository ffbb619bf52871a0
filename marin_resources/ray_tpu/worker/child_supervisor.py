"""The process between a step and a program that ends with it (`managed_process.py`).

In:  stdin, which ends when the program is to end; the id of the step's process; the program's output pipe.
Out: no process of the program is left; its exit code on stdout.

It is two processes: when a worker ends, Ray kills its children at once, and not theirs. So the child of the worker only
waits, and its own child keeps the program.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys

from marin_resources.ray_tpu.worker.process_tree import adopt_orphans, kill_descendants

POLL_S = 0.2
GRACE_S = 5.0
"""Time limit for the program to end by SIGTERM: a server removes its shared memory then."""


def main(owner: str, output: str, command: str) -> None:
    """`owner` is the id of the step's process, `output` the descriptor for the program's output."""
    if child := os.fork():
        os.close(int(output))
        os.waitpid(child, 0)
        return
    os.setsid()
    ends = _ends_of(int(owner))
    adopt_orphans()
    try:
        program = subprocess.Popen(
            json.loads(command),
            stdin=subprocess.DEVNULL,
            stdout=int(output),
            stderr=int(output),
            preexec_fn=_unblock,  # a companion blocks the signals that end the program
        )
    except OSError as error:
        os.write(int(output), f"{error}\n".encode())
        _say(127)
        return
    os.close(int(output))
    while program.poll() is None and not select.select(ends, [], [], POLL_S)[0]:
        pass
    for end in (program.terminate, program.kill):
        if program.poll() is None:
            end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(GRACE_S)
    kill_descendants()
    _say(program.poll())


def _ends_of(owner: int) -> list[int]:
    """Descriptors that become readable when the program is to end: stdin, and the step's process when it is gone.

    Forked children of that process may hold stdin's other end.
    """
    try:
        return [0, os.pidfd_open(owner)]
    except AttributeError:  # another system than Linux
        return [0]
    except ProcessLookupError:
        return [0, os.open(os.devnull, os.O_RDONLY)]  # always readable


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _say(code: int | None) -> None:
    """`code` is None for a program that even SIGKILL does not end: it waits for a device."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(str(-signal.SIGKILL if code is None else code))
        sys.stdout.flush()

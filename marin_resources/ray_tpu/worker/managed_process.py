"""A program that a step runs, such as a server of a model: it ends with the step, however that ends.

A supervisor (`child_supervisor.py`) starts it and kills it with all its descendants: when the step stops it, and when
the step's process is gone, even by `kill -9`.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from marin_resources.ray_tpu.sidecar import start_sidecar

LAST_LINES = 200
"""Number of last lines of output that are kept, to report why it ended."""
STOP_TIMEOUT_S = 30.0
"""The supervisor gives the program 5 s, and kills it then."""


class ManagedProcess:
    """A running program. Its output goes line by line to `on_line`."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], on_line: Callable[[str], None]) -> None:
        """Start it. `env` are variables beside those of this process. Raises OSError if the supervisor cannot start."""
        self.command = list(command)
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self.exit_code: int | None = None
        """The exit code of the program, negative for a signal; None while it runs."""
        self.ended = threading.Event()
        """It has ended, and so have its descendants."""
        self._on_line = on_line
        output, write = os.pipe()
        try:
            self._supervisor = start_sidecar(
                "marin_resources.ray_tpu.worker.child_supervisor",
                (os.getpid(), write, json.dumps(self.command)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(write,),
                env={**os.environ, **env},
            )
        finally:
            os.close(write)
        self._pump = threading.Thread(target=self._read, args=(os.fdopen(output, "rb"),), daemon=True)
        self._pump.start()
        threading.Thread(target=self._wait, daemon=True).start()

    def stop(self) -> None:
        """End it with all its descendants, and wait for that."""
        assert self._supervisor.stdin is not None
        self._supervisor.stdin.close()
        self._supervisor.wait(STOP_TIMEOUT_S)
        self.ended.wait(STOP_TIMEOUT_S)

    def _read(self, output: IO[bytes]) -> None:
        with output:
            for line in output:
                text = line.decode(errors="replace").rstrip("\r\n")
                self.last_lines.append(text)
                self._on_line(text)

    def _wait(self) -> None:
        assert self._supervisor.stdout is not None
        exit_code = self._supervisor.stdout.read()
        self._supervisor.wait()
        self._pump.join(STOP_TIMEOUT_S)  # its last lines report why it ended
        self.exit_code = int(exit_code) if exit_code else self._supervisor.returncode
        self.ended.set()

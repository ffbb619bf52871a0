"""The journal: what every worker did, appended by all of them to one local file, in the order of one clock."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Line:
    at_s: float
    """On the machine's monotonic clock, which all share."""
    pid: int
    event: str
    output: str = ""
    fence: int = 0
    more: dict[str, Any] = field(default_factory=dict)


class Journal:
    """Appends; lines of several processes never mix, nor are any lost when one is killed."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def note(self, event: str, output: str = "", fence: int = 0, **more: Any) -> None:
        line = {"at_s": time.monotonic(), "pid": os.getpid(), "event": event, "output": output, "fence": fence}
        os.write(self._fd, json.dumps({**line, "more": more}).encode() + b"\n")


class Overtaken:
    """Which of the paused writers have been taken over: follows a journal."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb")  # noqa: SIM115  (as long as this process)
        self._fences: dict[str, int] = {}
        self._paused: dict[int, Line] = {}

    def waiting(self, pid: int) -> bool:
        """Whether it paused as the writer of an output that nobody has taken over since."""
        while (text := self._file.readline()).endswith(b"\n"):
            line = Line(**json.loads(text))
            if line.event == "claimed":
                self._fences[line.output] = max(line.fence, self._fences.get(line.output, 0))
            if line.event == "paused":
                self._paused[line.pid] = line
        self._file.seek(-len(text), os.SEEK_CUR)  # a line that is just being written
        paused = self._paused.get(pid)
        return paused is not None and 0 < self._fences.get(paused.output, 0) == paused.fence


def read_journal(path: str) -> list[Line]:
    return [Line(**json.loads(line)) for line in Path(path).read_text().splitlines()]

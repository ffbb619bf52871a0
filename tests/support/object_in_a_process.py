"""An object for a process of its own: it counts, fails, hangs and dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from marin_resources.ray_tpu.worker.object_process import ObjectProcess


class Counter:
    def __init__(self, start: int) -> None:
        self.count = start

    def add(self, number: int) -> int:
        self.count += number
        return self.count

    def pid(self) -> int:
        return os.getpid()

    def fail(self) -> None:
        raise ValueError("no such number")

    def not_plain(self) -> Any:
        return {1, 2}

    def hang(self) -> None:
        time.sleep(600)

    def die_once(self, note: str) -> int:
        if not Path(note).exists():
            Path(note).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.count

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def opened(start: int) -> Iterator[Counter]:
    if start < 0:
        raise ValueError("below zero")
    yield Counter(start)


def one(start: int = 3) -> ObjectProcess:
    return ObjectProcess(opened, (start,), on_line=print)

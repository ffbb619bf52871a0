"""An object of which Ray processes have copies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from marin_resources.types.errors import MarinError


class Copied:
    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def pid(self, gate: str) -> int:
        """Its process, after the file `gate` is gone."""
        (self._folder / f"called-{os.getpid()}").touch()
        while os.path.exists(gate):
            time.sleep(0.01)
        return os.getpid()

    def refuse(self, value: str) -> None:
        raise MarinError(f"The value is {value!r}.")

    def die(self, times: int) -> int:
        """End its process by kill -9, `times` times in all. Returns the process that does not."""
        if len(list(self._folder.glob("died-*"))) < times:
            (self._folder / f"died-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()


@contextmanager
def copied(folder: str) -> Iterator[Copied]:
    Path(folder, f"opened-{os.getpid()}").touch()
    yield Copied(folder)
    Path(folder, f"closed-{os.getpid()}").touch()


@contextmanager
def unopened(folder: str) -> Iterator[Copied]:
    raise MarinError("The copy has no model.")
    yield

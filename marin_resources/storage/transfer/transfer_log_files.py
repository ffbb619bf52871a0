"""Storage of a ledger: a file beside a step's output, changed by compare-and-swap, or the memory of this process."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable
from typing import Protocol, TypeVar

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError, Snapshot, UnavailableError
from marin_resources.storage.paths import join
from marin_resources.storage.transfer.transfer_log import Ledger

NAME = ".marin/transfers.json"
PATIENCE_S = 180.0
"""Time limit of a retried change. A bucket takes one write per object and second, and many processes may compete."""
LONGEST_PAUSE_S = 4.0

T = TypeVar("T")


class LedgerStore(Protocol):
    def read(self) -> Ledger: ...

    def change(self, act: Callable[[Ledger], T]) -> T:
        """Apply `act` to the ledger, store it, and return the result of `act`, which may be called more than once."""


class LedgerInMemory:
    def __init__(self) -> None:
        self._ledger, self._turn = Ledger(), threading.Lock()

    def read(self) -> Ledger:
        return self._ledger

    def change(self, act: Callable[[Ledger], T]) -> T:
        with self._turn:
            return act(self._ledger)


class LedgerInFile:
    """Shared by all processes of a step."""

    def __init__(self, output_path: str) -> None:
        self._path = join(output_path, NAME)
        self._turn = threading.Lock()

    def read(self) -> Ledger:
        """Raises ControlFileError and UnavailableError."""
        return self._parse(control.read(self._path))

    def change(self, act: Callable[[Ledger], T]) -> T:
        """Threads of a process take turns, so that they do not conflict with each other. Raises as `read` does."""
        with self._turn:
            return self._change(act)

    def _parse(self, snapshot: Snapshot | None) -> Ledger:
        return Ledger.from_json(snapshot.data, self._path) if snapshot else Ledger()

    def _change(self, act: Callable[[Ledger], T]) -> T:
        deadline, pause_s, write_id = time.monotonic() + PATIENCE_S, 0.02, uuid.uuid4().hex
        result: T | None = None
        while True:
            snapshot = control.read(self._path)
            ledger = self._parse(snapshot)
            if write_id in ledger.writes:  # the write whose response was lost has succeeded
                return result  # type: ignore[return-value]
            before = ledger.to_json()
            result = act(ledger)
            if ledger.to_json() == before:
                return result
            ledger.writes.append(write_id)
            try:
                control.write(self._path, ledger.to_json().encode(), expected=snapshot.generation if snapshot else None)
                return result
            except (ConflictError, UnavailableError) as error:
                if time.monotonic() > deadline:
                    raise UnavailableError(
                        f"The ledger of transfers {self._path!r} could not be written for {PATIENCE_S:.0f} s "
                        f"({error}). Run again; finished copies stay."
                    ) from error
            time.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

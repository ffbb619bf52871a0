"""Where a ledger is kept: in a file beside a step's output, changed by compare-and-swap, or in this process alone."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable
from typing import Protocol, TypeVar

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError, UnavailableError
from marin_resources.storage.paths import join
from marin_resources.storage.transfer.ledger import Ledger

NAME = ".marin/transfers.json"
PATIENCE_S = 180.0
"""How long a change is tried again. A bucket takes one write of an object in a second, and many processes may come."""
LONGEST_PAUSE_S = 4.0

T = TypeVar("T")


class KeptLedger(Protocol):
    def read(self) -> Ledger: ...

    def change(self, act: Callable[[Ledger], T]) -> T:
        """Have `act` change the ledger, and keep it; what `act` returned. It may be called more than once."""


class LedgerInMemory:
    def __init__(self) -> None:
        self._ledger, self._turn = Ledger(), threading.Lock()

    def read(self) -> Ledger:
        return self._ledger

    def change(self, act: Callable[[Ledger], T]) -> T:
        with self._turn:
            return act(self._ledger)


class LedgerInFile:
    """Shared by all processes that are given the same output."""

    def __init__(self, output_path: str) -> None:
        self._path = join(output_path, NAME)
        self._turn = threading.Lock()

    def read(self) -> Ledger:
        """Raises UnavailableError."""
        found = control.read(self._path)
        return Ledger.from_json(found.data) if found else Ledger()

    def change(self, act: Callable[[Ledger], T]) -> T:
        """Raises UnavailableError. The threads of a process take turns, so that they do not race each other."""
        with self._turn:
            return self._change(act)

    def _change(self, act: Callable[[Ledger], T]) -> T:
        deadline, pause_s, write_id = time.monotonic() + PATIENCE_S, 0.02, uuid.uuid4().hex
        answer: T | None = None
        while True:
            found = control.read(self._path)
            ledger = Ledger.from_json(found.data) if found else Ledger()
            if write_id in ledger.writes:  # the write that was not answered took effect
                return answer  # type: ignore[return-value]
            before = ledger.to_json()
            answer = act(ledger)
            if ledger.to_json() == before:
                return answer
            ledger.writes.append(write_id)
            try:
                control.write(self._path, ledger.to_json().encode(), expected=found.generation if found else None)
                return answer
            except (ConflictError, UnavailableError) as error:
                if time.monotonic() > deadline:
                    raise UnavailableError(
                        f"{self._path!r}, the account of transfers, could not be written for {PATIENCE_S:.0f} s "
                        f"({error}). Run again; what has been copied stays."
                    ) from error
            time.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

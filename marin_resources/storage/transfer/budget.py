"""The mirror's budget: bytes are reserved before a transfer, and settled with the bytes that were moved.

In:  a transfer, charged to the account of the step that this process works for (`account.py`).
Out: a reservation, or an error with the size of the transfer, the rest of the budget and what to do.

All processes and threads of a step share one ledger beside its output. A heartbeat shows that an owner is alive. A
reservation is returned when its owner's process has ended on this machine, when a later attempt has begun, or when its
heartbeat did not change for its time to live, by the clock of the process that waits for it.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any

from marin_resources.host.process import start_time_s
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.transfer.account import BUDGET_GB, GB_BYTES, Account, current_account, default_budget_bytes
from marin_resources.storage.transfer.transfer_log import Decision, Ledger, Moved, Owner, Reservation
from marin_resources.storage.transfer.transfer_log_files import LedgerInFile, LedgerInMemory, LedgerStore
from marin_resources.types.errors import MarinError
from marin_resources.types.versioned_json import ControlFileError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE = "/proc/self/ns/pid"

TTL_S = 90.0
"""Time to live of a reservation without a heartbeat."""
BEATS_IN_A_LIFE = 3
SETTLE_EVERY_S = 5.0
"""A long transfer enters its moved bytes this often, so that little is lost if it dies."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0

log = logging.getLogger(__name__)


class TransferBudgetError(MarinError):
    """A transfer between regions exceeds the budget: one sentence."""


class Budget:
    """The bytes that one step, or one process outside any step, may move."""

    def __init__(self, ledger: LedgerStore, account: Account | None) -> None:
        self._ledger, self._account = ledger, account
        self._lock = threading.Lock()
        self._open: dict[str, Transfer] = {}
        self._beating = False

    @property
    def limit_bytes(self) -> int:
        return self._account.budget_bytes if self._account else default_budget_bytes()

    def reserve(self, path: str, size_bytes: int, *, whole: bool, source: str) -> Transfer:
        """Reserve the transfer of `size_bytes` bytes at `path` from the region `source`; use the result in a `with`.

        Waits while open transfers decide whether it fits, or move the same files. Raises TransferBudgetError.
        """
        reservation = Reservation(
            id=uuid.uuid4().hex,
            path=path,
            bytes=size_bytes,
            whole=whole,
            owner=current_owner(),
            attempt=self._account.attempt if self._account else 0,
        )
        watch, pause_s = ReservationWatch(), FIRST_PAUSE_S
        while True:
            decision, ledger = self._ledger.change(
                lambda it: (it.reserve(reservation, self.limit_bytes, watch.dead(it)), it)
            )
            if decision is Decision.GRANTED:
                return self._opened(reservation)
            if decision is Decision.REFUSED:
                raise TransferBudgetError(self._refusal(reservation, ledger, source))
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def settle(self, transfer: Transfer, moved: list[Moved], *, done: bool) -> None:
        """Enter moved bytes; `done` ends the reservation."""
        if done:
            with self._lock:
                self._open.pop(transfer.id, None)
        self._ledger.change(lambda ledger: ledger.settle(transfer.id, moved, done=done))

    def read(self) -> Ledger:
        return self._ledger.read()

    def _opened(self, reservation: Reservation) -> Transfer:
        transfer = Transfer(self, reservation.id)
        with self._lock:
            self._open[transfer.id] = transfer
            start = not self._beating and not isinstance(self._ledger, LedgerInMemory)
            self._beating |= start
        if start:
            threading.Thread(target=self._beat, name="transfer-heartbeat", daemon=True).start()
        return transfer

    def _beat(self) -> None:
        """Send heartbeats while a transfer is open."""
        while True:
            time.sleep(TTL_S / BEATS_IN_A_LIFE)
            with self._lock:
                transfers = dict(self._open)
                if not transfers:
                    self._beating = False
                    return
            try:
                gone = self._ledger.change(partial(_beat_of, transfers))
            except (OSError, ControlFileError) as error:  # the next heartbeat may succeed
                log.warning("%s", error)
                continue
            for transfer_id in gone:
                transfers[transfer_id].lost = True

    def _refusal(self, reservation: Reservation, ledger: Ledger, source: str) -> str:
        limit, moved = self.limit_bytes, ledger.moved_bytes
        subject = f"Step {self._account.step!r}" if self._account else "This process"
        budget = f"its mirror budget is {compact_bytes(limit)}"
        if moved:
            budget = f"{compact_bytes(max(0, limit - moved))} are left of its mirror budget of {compact_bytes(limit)}"
        needed = enough_gb(moved + reservation.bytes)
        more = f"Pass budget_gb={needed}" if self._account else f"Set {BUDGET_GB}={needed}"
        need = f"{subject} needs {reservation.path!r} ({compact_bytes(reservation.bytes)})"
        return f"{need} and {budget}. {more}, or run in {source}."


class Transfer:
    """A reservation in use. The bytes that it did not move are returned when its block ends."""

    def __init__(self, budget: Budget, transfer_id: str) -> None:
        self.id, self.lost = transfer_id, False
        self._budget = budget
        self._lock = threading.Lock()
        self._unsettled: list[Moved] = []
        self._settled_at = time.monotonic()

    def check(self) -> None:
        """Raise TransferBudgetError if the reservation was returned. Call it before moving more bytes."""
        if self.lost:
            raise TransferBudgetError(
                f"A transfer between regions counted as dead, as its process sent no heartbeat for {TTL_S:.0f} s, and "
                "its reservation was returned. Run again; finished copies stay."
            )

    def moved(self, entry: Moved) -> None:
        """Enter moved bytes. Threads may call it."""
        with self._lock:
            self._unsettled.append(entry)
            if time.monotonic() - self._settled_at < SETTLE_EVERY_S:
                return
            moved, self._unsettled, self._settled_at = self._unsettled, [], time.monotonic()
        self._budget.settle(self, moved, done=False)

    def __enter__(self) -> Transfer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            moved, self._unsettled = self._unsettled, []
        self._budget.settle(self, moved, done=True)


class ReservationWatch:
    """Decides by this process's own clock, while it waits, which reservations have a dead owner."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}
        """Id -> (heartbeat count, when this count was first seen here)."""

    def dead(self, ledger: Ledger) -> set[str]:
        """Ids of the reservations whose owner has ended, or sent no heartbeat for `TTL_S`."""
        now = time.monotonic()
        for reservation in ledger.reserved.values():
            if self._seen.get(reservation.id, (None, 0.0))[0] != reservation.beat:
                self._seen[reservation.id] = (reservation.beat, now)
        return {
            i
            for i, reservation in ledger.reserved.items()
            if now - self._seen[i][1] > TTL_S or _is_dead(reservation.owner)
        }


def current_budget() -> Budget:
    """The budget of the step that this process works for, else of this process."""
    account = current_account()
    return _budget_of(account) if account else _PROCESS


def spent(output_path: str) -> Mapping[str, Any]:
    """The transfers charged to an output: {"bytes", "dollars", "transfers": [{"path", "from", "to", "files", "bytes",
    "dollars"}]}, the largest first. Raises ControlFileError and UnavailableError."""
    moved = sorted(LedgerInFile(output_path).read().moved, key=lambda entry: (-entry.bytes, entry.path))
    return {
        "bytes": sum(entry.bytes for entry in moved),
        "dollars": round(sum(entry.dollars for entry in moved), 2),
        "transfers": [_transfer(entry) for entry in moved],
    }


def moved_bytes(output_path: str) -> int:
    """The bytes of all transfers charged to an output. Raises ControlFileError and UnavailableError."""
    return LedgerInFile(output_path).read().moved_bytes


def compact_bytes(size_bytes: int) -> str:
    """ "10 GB", "2.1 TB"."""
    return readable_bytes(size_bytes).replace(".0 ", " ")


def enough_gb(size_bytes: int) -> str:
    """The number of GB for so many bytes, rounded up to two digits: "2200" for 2.14 TB."""
    if size_bytes <= 0:
        return "1"
    unit = 10.0 ** (math.floor(math.log10(size_bytes)) - 1)
    return f"{math.ceil(size_bytes / unit) * unit / GB_BYTES:.12g}"


def _beat_of(transfer_ids: Iterable[str], ledger: Ledger) -> set[str]:
    return ledger.beat(transfer_ids)


def _transfer(entry: Moved) -> dict[str, Any]:
    return {
        "path": entry.path,
        "from": entry.origin,
        "to": entry.to,
        "files": entry.files,
        "bytes": entry.bytes,
        "dollars": round(entry.dollars, 4),
    }


@lru_cache(maxsize=8)
def _budget_of(account: Account) -> Budget:
    return Budget(LedgerInFile(account.output_path), account)


_PROCESS = Budget(LedgerInMemory(), None)


def current_owner() -> Owner:
    """This process."""
    return _owner(os.getpid())  # by pid: a fork is another owner


def _is_dead(owner: Owner) -> bool:
    """Whether the process is known to have ended. False on another machine: it cannot be observed."""
    if owner.machine != _machine():
        return False
    started_s = start_time_s(owner.pid)
    return started_s is None or abs(started_s - owner.started) > 1


@lru_cache(maxsize=4)
def _owner(pid: int) -> Owner:
    import psutil

    return Owner(id=uuid.uuid4().hex, machine=_machine(), pid=pid, started=psutil.Process(pid).create_time())


@lru_cache(maxsize=1)
def _machine() -> str:
    """The boot id of this machine and the PID namespace, as containers that share a host's name do not see each other's
    processes; a random id where the system has neither."""
    if not BOOT_ID.exists() or not os.path.exists(PID_NAMESPACE):
        return uuid.uuid4().hex
    return f"{BOOT_ID.read_text().strip()} {os.readlink(PID_NAMESPACE)}"

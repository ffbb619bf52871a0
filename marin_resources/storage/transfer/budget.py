"""The mirror's budget: bytes are reserved before they are moved, and settled with what was moved.

In:  what is to be moved, on the account of the step that this process works for (`account.py`).
Out: leave to move it, or a sentence that says how large it is, what is left and what to do.

All processes and threads of a step share one ledger beside its output. An owner shows that it lives by a heartbeat. A
reservation comes back when its owner's process is gone from this machine, when a later attempt has begun, or when its
heartbeat has stood still for a time to live on the clock of the one who waits for it.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from types import TracebackType
from typing import Any

from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.transfer.account import BUDGET_GB, GB_BYTES, Account, current_account, default_budget_bytes
from marin_resources.storage.transfer.ledger import Answer, Ledger, Moved, Reservation
from marin_resources.storage.transfer.ledger_files import KeptLedger, LedgerInFile, LedgerInMemory
from marin_resources.storage.transfer.owner import is_dead, this_process

TTL_S = 90.0
BEATS_IN_A_LIFE = 3
SETTLE_EVERY_S = 5.0
"""How often what a long transfer has moved is entered, so that little is forgotten if it dies."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0

log = logging.getLogger(__name__)


class TransferBudgetError(RuntimeError):
    """More was to be moved between regions than the budget allows: one sentence."""


class Budget:
    """What one step, or one process outside any step, may move."""

    def __init__(self, ledger: KeptLedger, account: Account | None) -> None:
        self._ledger, self._account = ledger, account
        self._lock = threading.Lock()
        self._open: dict[str, Transfer] = {}
        self._beating = False

    @property
    def limit_bytes(self) -> int:
        return self._account.budget_bytes if self._account else default_budget_bytes()

    def reserve(self, path: str, size_bytes: int, *, whole: bool, source: str) -> Transfer:
        """Leave to move so many bytes of what lies at `path` from the region `source`; use it in a `with`.

        Waits while others' transfers decide whether it fits, or move the same files. Raises TransferBudgetError.
        """
        wanted = Reservation(
            id=uuid.uuid4().hex,
            path=path,
            bytes=size_bytes,
            whole=whole,
            owner=this_process(),
            attempt=self._account.attempt if self._account else 0,
        )
        watch, pause_s = Watch(), FIRST_PAUSE_S
        while True:
            answer, ledger = self._ledger.change(lambda it: (it.ask(wanted, self.limit_bytes, watch.dead(it)), it))
            if answer is Answer.GRANTED:
                return self._opened(wanted)
            if answer is Answer.REFUSED:
                raise TransferBudgetError(self._refusal(wanted, ledger, source))
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def settle(self, transfer: Transfer, moved: list[Moved], *, done: bool) -> None:
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
        """As long as something is on its way."""
        while True:
            time.sleep(TTL_S / BEATS_IN_A_LIFE)
            with self._lock:
                transfers = dict(self._open)
                if not transfers:
                    self._beating = False
                    return
            try:
                gone = self._ledger.change(partial(_beat_of, transfers))
            except OSError as error:  # the store does not answer; the next beat may get through
                log.warning("%s", error)
                continue
            for transfer_id in gone:
                transfers[transfer_id].lost = True

    def _refusal(self, wanted: Reservation, ledger: Ledger, source: str) -> str:
        limit, moved = self.limit_bytes, ledger.moved_bytes
        who = f"Step {self._account.step!r}" if self._account else "This process"
        left = f"its mirror budget is {in_words(limit)}"
        if moved:
            left = f"{in_words(max(0, limit - moved))} are left of its mirror budget of {in_words(limit)}"
        needed = enough_gb(moved + wanted.bytes)
        more = f"Pass budget_gb={needed}" if self._account else f"Set {BUDGET_GB}={needed}"
        return f"{who} needs {wanted.path!r} ({in_words(wanted.bytes)}) and {left}. {more}, or run in {source}."


class Transfer:
    """A reservation in use. What it did not move comes back when its block ends, however it ends."""

    def __init__(self, budget: Budget, transfer_id: str) -> None:
        self.id, self.lost = transfer_id, False
        self._budget = budget
        self._lock = threading.Lock()
        self._unsettled: list[Moved] = []
        self._settled_at = time.monotonic()

    def check(self) -> None:
        """Raise TransferBudgetError if the reservation was taken back. To be called before moving more."""
        if self.lost:
            raise TransferBudgetError(
                f"A transfer between regions was taken for dead, as its process showed no life for {TTL_S:.0f} s, and "
                "its reservation was given back. Run again; what has been copied stays."
            )

    def moved(self, entry: Moved) -> None:
        """Enter what has been moved. Threads may call this."""
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


class Watch:
    """Which reservations are of the dead, by what this process sees while it waits."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}
        """Id -> its beat, and when that beat was first seen here."""

    def dead(self, ledger: Ledger) -> set[str]:
        now = time.monotonic()
        for one in ledger.reserved.values():
            if self._seen.get(one.id, (None, 0.0))[0] != one.beat:
                self._seen[one.id] = (one.beat, now)
        return {i for i, one in ledger.reserved.items() if now - self._seen[i][1] > TTL_S or is_dead(one.owner)}


def current_budget() -> Budget:
    """Of the step that this process works for, else of this process."""
    account = current_account()
    return _budget_of(account) if account else _PROCESS


def spent(output_path: str) -> Mapping[str, Any]:
    """What was moved for an output: {"bytes", "dollars", "transfers": [{"path", "from", "to", "files", "bytes",
    "dollars"}]}, the largest first. Raises UnavailableError."""
    moved = sorted(LedgerInFile(output_path).read().moved, key=lambda entry: (-entry.bytes, entry.path))
    return {
        "bytes": sum(entry.bytes for entry in moved),
        "dollars": round(sum(entry.dollars for entry in moved), 2),
        "transfers": [_told(entry) for entry in moved],
    }


def in_words(size_bytes: int) -> str:
    """ "10 GB", "2.1 TB"."""
    return readable_bytes(size_bytes).replace(".0 ", " ")


def enough_gb(size_bytes: int) -> str:
    """GB that hold so many bytes, rounded up to two digits: "2200" for 2.14 TB."""
    if size_bytes <= 0:
        return "1"
    unit = 10.0 ** (math.floor(math.log10(size_bytes)) - 1)
    return f"{math.ceil(size_bytes / unit) * unit / GB_BYTES:.12g}"


def _beat_of(transfer_ids: Iterable[str], ledger: Ledger) -> set[str]:
    return ledger.beat(transfer_ids)


def _told(entry: Moved) -> dict[str, Any]:
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

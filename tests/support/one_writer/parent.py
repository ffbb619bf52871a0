"""Starts the competing processes, and kills, pauses and restarts them until the time is over and all is done.

In:  a prefix, seconds, a seed, how many processes.   Out: a journal.

Everything is loaded once and the workers are forked, so a restart takes milliseconds. This process itself never talks
to the store: what a store's client keeps does not survive a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import mmap
import os
import random
import signal
import struct
import time
import traceback
from dataclasses import dataclass, field

from marin_resources.storage.lease.text import TTL_VARIABLE
from marin_resources.storage.output.store import Store
from one_writer import plan
from one_writer.faults import Faults
from one_writer.journal import Journal, Overtaken, read_journal
from one_writer.worker import Worker

PATIENCE_S = 45.0
"""For what is begun, after the faults have ended."""
TICK_S = 0.005
PR_SET_PDEATHSIG = 1
LOADED_BEFORE = ("psutil", "gcsfs", "s3fs", "google_crc32c", "concurrent.futures.thread")


@dataclass(kw_only=True)
class Arena:
    prefix: str
    journal_path: str
    seconds: float
    seed: int
    processes: int
    lose_answers: bool
    """In the workers. Where the store's server loses them itself, they need not."""
    ends_at_s: float = 0.0
    round_now: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 8))
    """Shared by all: the round that the foremost worker is in."""

    def calm(self) -> bool:
        return time.monotonic() > self.ends_at_s

    def current_round(self) -> int:
        return int(struct.unpack("q", self.round_now[:8])[0])

    def leave_round(self, number: int) -> bool:
        """Whether there is another round after this one."""
        if self.current_round() == number and not self.calm():
            self.round_now[:8] = struct.pack("q", number + 1)
        return self.current_round() > number


class Parent:
    def __init__(self, arena: Arena) -> None:
        self._arena, self._journal = arena, Journal(arena.journal_path)
        self._chance = random.Random(arena.seed)
        self._overtaken = Overtaken(arena.journal_path)
        self._running: dict[int, int] = {}
        """Process id -> index of the worker."""
        self._stopped: dict[int, float] = {}
        """Process id -> when it is to go on, if nobody is to take over from it."""
        self._struck: set[int] = set()
        """Processes that were told to stop; others stopped by themselves, at a point that matters."""
        self._started = 0

    def run(self) -> bool:
        """Whether all came to an end in time."""
        os.environ[TTL_VARIABLE] = str(plan.ttl_s_on(self._arena.prefix))
        for module in LOADED_BEFORE:
            importlib.import_module(module)
        self._arena.ends_at_s = time.monotonic() + self._arena.seconds
        try:
            for index in range(self._arena.processes):
                self._start(index, before=0)
            return self._until_all_is_done()
        finally:
            for pid in self._running:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def _until_all_is_done(self) -> bool:
        next_kill_s = next_pause_s = time.monotonic() + 0.5
        while self._running and time.monotonic() < self._arena.ends_at_s + PATIENCE_S:
            self._hear_of_children()
            now_s = time.monotonic()
            for pid in [pid for pid, at_s in self._stopped.items() if self._goes_on(pid, now_s - at_s)]:
                del self._stopped[pid]
                os.kill(pid, signal.SIGCONT)
            if not self._arena.calm() and self._running:
                if now_s > next_kill_s:
                    next_kill_s = now_s + self._chance.expovariate(1 / plan.KILL_EVERY_S)
                    self._strike("killed", signal.SIGKILL)
                if now_s > next_pause_s:
                    next_pause_s = now_s + self._chance.expovariate(1 / plan.PAUSE_EVERY_S)
                    self._strike("paused", signal.SIGSTOP)
            time.sleep(TICK_S)
        return not self._running

    def _goes_on(self, pid: int, late_s: float) -> bool:
        longest_s = plan.LONGEST_PAUSE_IN_LIVES * plan.ttl_s_on(self._arena.prefix)
        return late_s > (longest_s if self._overtaken.waiting(pid) else 0)

    def _strike(self, event: str, number: signal.Signals) -> None:
        pid = self._chance.choice(sorted(self._running))
        self._journal.note(event, victim=pid)
        os.kill(pid, number)
        if number is signal.SIGSTOP:
            self._struck.add(pid)

    def _hear_of_children(self) -> None:
        while self._running:
            pid, state = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return
            if os.WIFSTOPPED(state):
                anywhere = pid in self._struck
                self._struck.discard(pid)
                lives = self._chance.uniform(*(plan.PAUSES_IN_LIVES if anywhere else plan.PAUSES_AT_A_POINT_IN_LIVES))
                self._stopped[pid] = time.monotonic() + lives * plan.ttl_s_on(self._arena.prefix)
                continue
            index = self._running.pop(pid)
            self._stopped.pop(pid, None)
            if state != 0:
                self._start(index, before=pid)

    def _start(self, index: int, before: int) -> None:
        self._started += 1
        seed = self._arena.seed * 1_000_003 + self._started
        pid = os.fork()
        if pid == 0:
            work_and_exit(self._arena, seed, before)
        self._running[pid] = index
        self._journal.note("started", child=pid, before=before)


def work_and_exit(arena: Arena, seed: int, before: int) -> None:
    """The life of a worker; it ends with its parent at the latest. Exit code 0: all is done."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    journal = Journal(arena.journal_path)
    try:
        work(arena, seed, before, journal)
    except BaseException:  # whatever it is, it is told, and another worker begins
        journal.note("crashed", error=traceback.format_exc())
        os._exit(1)
    os._exit(0)


def work(arena: Arena, seed: int, before: int, journal: Journal) -> None:
    chance = random.Random(seed)
    deaf = chance.random() < plan.DEAF
    faults = Faults(chance, journal, arena.calm, comes_late=deaf)
    faults.set_up(lose_answers=arena.lose_answers)
    store = Store(arena.prefix)
    worker = Worker(
        store=store,
        journal=journal,
        chance=chance,
        faults=faults,
        ttl_s=plan.ttl_s_on(arena.prefix),
        deaf=deaf,
    )
    if before and chance.random() < 0.5:
        tell_of_the_dead(store, arena.journal_path, before)
    number = arena.current_round()
    while True:
        worker.complete(plan.outputs_of(number))
        if not arena.leave_round(number):
            return
        number += 1


def tell_of_the_dead(store: Store, journal_path: str, pid: int) -> None:
    """As an orchestrator does whose worker has died."""
    claimed = [line for line in read_journal(journal_path) if line.pid == pid and line.event == "claimed"]
    if claimed:
        last = claimed[-1]
        [output] = [o for o in plan.outputs_of(int(last.output.split("/")[0].split("-")[1])) if o.name == last.output]
        with contextlib.suppress(OSError):  # the store may be away, then another finds out
            store.mark_stopped(output, last.fence, "its worker died")

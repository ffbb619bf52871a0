"""The limit of requests in a second to one host, for all workers of a step together.

Requests have slots of 1/rate seconds. The next free slot is in a control file of the output; a worker reserves a few
slots and waits for each. So workers never send two requests in one slot, however many they are. A wait that a server
states (`Retry-After`) moves the next free slot, for all workers.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
import uuid
from typing import Any

from marin_assets.stages.download.web.faults import LONGEST_STATED_WAIT_S, wait
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError, UnavailableError
from marin_resources.storage.paths import is_local, join

RESERVED_S = 1.0
"""Slots that a worker reserves in a bucket, which takes about one write of an object in a second."""
LOOK_EVERY_S = 1.0
"""Without a rate, a worker reads the waits of the others this often."""
LONGEST_TURN_S = 0.3
"""Longest wait after another worker was first."""
STORE_TRIES = 20


class Pace:
    """The requests that this process may send to a host. Safe for many threads."""

    def __init__(self, output_path: str, origin: str, per_second: float | None, stop: threading.Event) -> None:
        name = hashlib.sha256(origin.encode()).hexdigest()[:16]
        self._path = join(output_path, ".download", f"pace-{name}.json")
        self._rate, self._stop = per_second, stop
        self._slots_at_once = 1 if is_local(output_path) else max(1, int((per_second or 1) * RESERVED_S))
        self._slots: list[float] = []
        self._looked_at_s = self._not_before_s = 0.0
        self._refused = 0
        self._lock = threading.Lock()

    def take(self) -> None:
        """Wait for a slot. Raises DownloadError if the download is stopped."""
        with self._lock:
            if self._rate is None:
                slot_s = self._looked()
            else:
                while not self._slots:
                    self._slots = self._reserved(self._rate)
                slot_s = self._slots.pop(0)
        if (wait_s := slot_s - time.time()) > 0:
            wait(self._stop, wait_s)

    def pause(self, seconds: float) -> None:
        """Let all workers wait. Raises DownloadError if the download is stopped."""
        with self._lock:
            self._slots = []
            until_s = time.time() + min(seconds, LONGEST_STATED_WAIT_S)
            self._not_before_s = max(self._not_before_s, until_s)
            while True:
                state, generation = self._read()
                if state["next_s"] >= until_s or self._write(until_s, generation):
                    return

    def _looked(self) -> float:
        if time.time() - self._looked_at_s >= LOOK_EVERY_S:
            self._not_before_s, self._looked_at_s = self._read()[0]["next_s"], time.time()
        return self._not_before_s

    def _reserved(self, rate: float) -> list[float]:
        """The next slots; none if another worker was first."""
        state, generation = self._read()
        first_s = max(time.time(), state["next_s"])
        if self._write(first_s + self._slots_at_once / rate, generation):
            return [first_s + number / rate for number in range(self._slots_at_once)]
        wait(self._stop, random.uniform(0.0, LONGEST_TURN_S))
        return []

    def _read(self) -> tuple[dict[str, Any], str | None]:
        snapshot = control.read(self._path)
        if snapshot is None:
            return {"next_s": 0.0}, None
        state = json.loads(snapshot.data)
        # a slot further away than any is that of a machine whose clock is wrong
        return (state if state["next_s"] <= time.time() + 2 * LONGEST_STATED_WAIT_S else {"next_s": 0.0}), (
            snapshot.generation
        )

    def _write(self, next_s: float, generation: str | None) -> bool:
        """Whether it was written: other workers may have been first, or too many for the store.

        Raises UnavailableError if the store refused STORE_TRIES times in a row.
        """
        state = {"next_s": next_s, "writer": uuid.uuid4().hex}
        try:
            control.write(self._path, json.dumps(state).encode(), expected=generation)
        except ConflictError:
            return False
        except UnavailableError:
            self._refused += 1
            if self._refused >= STORE_TRIES:
                raise
            return False
        self._refused = 0
        return True

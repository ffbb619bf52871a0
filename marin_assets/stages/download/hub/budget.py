"""The limit of requests to the hub in five minutes, for all workers of a step together.

The hub counts requests in fixed windows of 300 s, by its user or address. The count is a control file of the output,
`.hub/budget.json`: a worker takes requests from it in blocks, and returns those that it does not use. A hub that
reports its limit as used up ends the window for all workers.
"""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from typing import Any

from marin_assets.stages.download.web.faults import wait
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError, UnavailableError

WINDOW_S = 300.0
BLOCKS = 20
"""A worker takes a twentieth of the window's requests at a time, so that no bucket's object is written often."""
MOST_AT_ONCE = 50
LONGEST_TURN_S = 1.0
"""Longest wait after another worker was first: a bucket takes about one write of an object in a second."""
STORE_TRIES = 20
CLOSING_TRIES = 5


class Budget:
    """The requests that this process may send. Safe for many threads."""

    def __init__(self, path: str, most: int, stop: threading.Event) -> None:
        self._path, self._most, self._stop = path, most, stop
        self._block = max(1, min(MOST_AT_ONCE, most // BLOCKS))
        self._held, self._ends_s, self._refused = 0, 0.0, 0
        self._lock = threading.Lock()

    def take(self) -> None:
        """Take one request, and wait for it if the window has none. Raises HubError if the download is stopped."""
        with self._lock:
            while self._held < 1 or time.time() >= self._ends_s:
                self._take_block()
            self._held -= 1

    def pause(self, seconds: float) -> None:
        """End the window: no worker sends a request for these seconds. Raises HubError if the download is stopped."""
        with self._lock:
            self._held = 0
            while not self._exhaust(time.time() + seconds):
                self._wait_for_others()

    def close(self) -> None:
        """Return the requests that were not used. If other workers write just then, they are lost for this window."""
        with self._lock:
            for _ in range(CLOSING_TRIES):
                if not self._held or time.time() >= self._ends_s:
                    break
                state, generation = self._read()
                is_same = state["ends_s"] == self._ends_s
                if not is_same or self._write(self._ends_s, max(0, state["used"] - self._held), generation):
                    break
            self._held = 0

    def _take_block(self) -> None:
        state, generation = self._read()
        now_s = time.time()
        # a window that ends later than one can is that of a machine whose clock is wrong
        if now_s >= state["ends_s"] or state["ends_s"] > now_s + 4 * WINDOW_S:
            state = {"ends_s": now_s + WINDOW_S, "used": 0}
        available = min(self._block, self._most - state["used"])
        if available < 1:
            wait(self._stop, state["ends_s"] - now_s)
        elif self._write(state["ends_s"], state["used"] + available, generation):
            self._held, self._ends_s = available, state["ends_s"]
        else:
            self._wait_for_others()

    def _exhaust(self, ends_s: float) -> bool:
        state, generation = self._read()
        is_exhausted = state["used"] >= self._most
        return self._write(max(ends_s, state["ends_s"]) if is_exhausted else ends_s, self._most, generation)

    def _wait_for_others(self) -> None:
        wait(self._stop, random.uniform(0.0, LONGEST_TURN_S))

    def _read(self) -> tuple[dict[str, Any], str | None]:
        snapshot = control.read(self._path)
        if snapshot is None:
            return {"ends_s": 0.0, "used": 0}, None
        return json.loads(snapshot.data), snapshot.generation

    def _write(self, ends_s: float, used: int, generation: str | None) -> bool:
        """Whether it was written: other workers may have been first, or too many for the store.

        Raises UnavailableError if the store refused STORE_TRIES times in a row.
        """
        state = {"ends_s": ends_s, "used": used, "writer": uuid.uuid4().hex}
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

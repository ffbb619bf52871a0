"""The progress of a function on one host: noted in the key-value store of Ray's head, read by the job.

A host notes where its function began, each checkpoint, and that it hangs; steps it only counts. In the other direction
the job notes that a checkpoint is wanted, and host 0 looks once a second.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from marin_resources.ray_tpu.ray_internals import kv_delete, kv_get, kv_put
from marin_resources.ray_tpu.slices.host_crash import crash_name

log = logging.getLogger(__name__)

NAMESPACE = b"marin"
LOOK_EVERY_S = 1.0


@dataclass(frozen=True, kw_only=True)
class HostProgress:
    """Times are in seconds since the function was called."""

    step: int | None = None
    """The last step that was reported when this was noted."""
    began_s: float | None = None
    """The time of its beginning, or of its resumption from a checkpoint."""
    resumed_from: int | None = None
    saved_step: int | None = None
    """The step of the newest complete checkpoint."""
    saved_s: float | None = None
    """When that step was done."""
    hangs: str | None = None
    """One sentence, if the function reported no step for too long."""


class Notes:
    """The notes of one try. `name`: the task and the number of the try.

    A head that does not answer is logged: the work continues without it. A missing note is the beginning, or nothing.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._prefix = f"progress/{name}/"

    def put(self, host: int, progress: HostProgress) -> None:
        self._put(str(host), json.dumps(dataclasses.asdict(progress)))

    def get(self, host: int) -> HostProgress:
        """The last note of the host; for a host that noted nothing, the beginning."""
        data = self._get(str(host))
        return HostProgress(**json.loads(data)) if data else HostProgress()

    def request_checkpoint(self) -> None:
        self._put("checkpoint", "requested")

    def checkpoint_requested(self) -> bool:
        return self._get("checkpoint") is not None

    def remove(self) -> None:
        self._call_head(lambda: kv_delete(self._prefix.encode(), NAMESPACE, by_prefix=True))

    def _put(self, key: str, value: str) -> None:
        self._call_head(lambda: kv_put(f"{self._prefix}{key}".encode(), value.encode(), NAMESPACE))

    def _get(self, key: str) -> bytes | None:
        value: bytes | None = self._call_head(lambda: kv_get(f"{self._prefix}{key}".encode(), NAMESPACE))
        return value

    def _call_head(self, request: Callable[[], Any]) -> Any:
        from ray.exceptions import RayError  # late, for its weight

        try:
            return request()
        except RayError as error:
            log.warning("the progress of %s is not noted or read, as Ray's head does not answer: %s", self.name, error)
            return None


class ProgressOnHost:
    """Listens to the function in a host's process (see `marin_resources.step_api.progress`)."""

    def __init__(self, notes: Notes, host: int) -> None:
        self._notes, self._host = notes, host
        self._called_s = time.monotonic()
        self._now = HostProgress()
        self._lock = threading.Lock()
        self._done_s: dict[int, float] = {}
        """Step -> when it was done, for those that no complete checkpoint has."""
        self._requested, self._looked_s = False, 0.0
        self.renew: Any = lambda: None
        """Called at each report."""

    @property
    def crash_name(self) -> str:
        """The name of the note of a crash of this process."""
        return crash_name(self._notes.name, self._host)

    def resumed(self, step: int | None) -> None:
        with self._lock:
            self._note(step=step, began_s=self._elapsed_s(), resumed_from=step)
        self.renew()

    def stepped(self, step: int) -> None:
        with self._lock:
            self._done_s[step] = self._elapsed_s()
            self._now = dataclasses.replace(self._now, step=step)
        self.renew()

    def numbers(self, numbers: Mapping[str, float], of: int | None) -> None: ...

    def saved(self, step: int) -> None:
        with self._lock:
            done_s = self._done_s.get(step, self._elapsed_s())
            self._done_s = {later: at_s for later, at_s in self._done_s.items() if later > step}
            self._note(saved_step=step, saved_s=done_s)

    def save_requested(self) -> bool:
        """Whether a checkpoint is requested. Reads it from the head once a second, until it is."""
        if not self._requested and time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._requested = self._notes.checkpoint_requested()
            self._looked_s = time.monotonic()
        return self._requested

    def hangs(self, limit_s: float) -> None:
        """Note that no step was reported for `limit_s`."""
        with self._lock:
            after = "" if self._now.step is None else f" after step {self._now.step}"
            self._note(hangs=f"no step was reported for {limit_s:g} s{after}")

    def _note(self, **changed: Any) -> None:
        self._now = dataclasses.replace(self._now, **changed)
        self._notes.put(self._host, self._now)

    def _elapsed_s(self) -> float:
        return round(time.monotonic() - self._called_s, 3)

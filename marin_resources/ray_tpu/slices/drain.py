"""Leave the hosts of a try at a checkpoint: as they are about to be taken away, or as more of them are free now.

The notice is Ray's: a node is being drained. A host that learns of its preemption from its cloud drains its node. A
function that makes no checkpoint works until its hosts are gone, and on the slices that it has.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from marin_resources.ray_tpu.slices.causes import Cause, Failure
from marin_resources.ray_tpu.slices.host_crash import draining_nodes
from marin_resources.ray_tpu.slices.host_progress import HostProgress, Notes
from marin_resources.ray_tpu.slices.reservation import Host
from marin_resources.ray_tpu.slices.scale_up import ScaleUp

LOOK_EVERY_S = 1.0


class Drain:
    """Watches the hosts of one try."""

    def __init__(self, ray: Any, hosts: Sequence[Host], notes: Notes, growth: ScaleUp) -> None:
        self._ray, self._hosts, self._notes, self._growth = ray, hosts, notes, growth
        self._looked_s = time.monotonic()
        self._before: HostProgress | None = None
        """The progress that was noted when the checkpoint was requested."""
        self.why: Failure | None = None
        """The reason of the try's end when the hosts are left; None while no reason exists."""

    def is_due(self) -> bool:
        """Whether the hosts are to be left now. Looks once a second."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_EVERY_S:
            return False
        self._looked_s = now_s
        noted = self._notes.get(0)
        self._look(noted)
        if self.why is None or self._before is None:
            return False
        return noted.saved_step is not None and noted.saved_step != self._before.saved_step

    def end(self) -> None:
        """The try has ended."""
        self._growth.release()

    def _look(self, noted: HostProgress) -> None:
        if self.why is not None and self.why.cause is Cause.PREEMPTED:
            return
        draining = draining_nodes()
        leaving = next((host for host in self._hosts if host.node_id in draining), None)
        # only for a function that makes checkpoints: another one would begin again
        more = self._growth.found() if leaving is None and noted.saved_step is not None else None
        if leaving is not None:
            self.why = Failure(cause=Cause.PREEMPTED, host=leaving, error="its node is being drained")
        elif more is None:
            self.why = None
            return
        elif self.why is None:
            self.why = Failure(cause=Cause.MORE_SLICES, host=self._hosts[0], error=f"{more} slices are there now")
        else:
            return
        self._before = noted
        self._notes.request_checkpoint()

"""The controller of a cluster's slices: it looks, decides, stores what it decided, and does it; again and again.

It may be killed at any moment, and started again anywhere: it remembers nothing. Of several for one cluster, one works
and the others stand by: the file of wanted slices names the one, and until when.
"""

from __future__ import annotations

import enum
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.google import GoogleError
from marin_resources.infra.slices.decide import Action, Decision, Do, decide
from marin_resources.infra.slices.queued import Phase, Queued, Slices
from marin_resources.infra.slices.request import request_of
from marin_resources.infra.slices.wanted import Wanted, begin, load, path_of, store
from marin_resources.storage.control.protocol import ConflictError

log = logging.getLogger(__name__)

OWNED_S = 300.0
"""A controller that has not been heard of for so long is replaced by another one."""
Joined = Callable[[], Mapping[str, int] | None]
Bad = Callable[[Sequence[str]], Mapping[str, str]]


class Pass(enum.Enum):
    """How one pass ended."""

    DONE = "done"
    STANDBY = "another controller works"
    CONFLICT = "the wanted slices were changed meanwhile"


@dataclass(frozen=True, kw_only=True)
class Report:
    """What one pass has seen and done."""

    ended: Pass
    wanted: Wanted
    there: tuple[Queued, ...] = ()
    done: tuple[Action, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    refused: tuple[str, ...] = ()
    """The sentence of each action that Google refused."""

    @property
    def settled(self) -> bool:
        """Whether nothing was to be done."""
        return self.ended is Pass.DONE and not (self.done or self.replaced or self.refused)


@dataclass
class Controller:
    cluster: Cluster
    slices: Slices
    joined: Joined = lambda: None
    """Name of a slice -> its hosts that are nodes of the cluster; None if the cluster does not answer."""
    bad: Bad = lambda names: {}
    """Of the slices of these names, those that are to be replaced -> why."""
    now: Callable[[], float] = time.time
    id: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}")

    def step(self) -> Report:
        """One pass. Raises GoogleError if Google does not answer, WantedError and UnavailableError of the file."""
        path = path_of(self.cluster)
        wanted, generation = load(path)
        if generation is None:
            self.begin()
            wanted, generation = load(path)
        if wanted.owner not in ("", self.id) and self.now() < wanted.owned_until:
            return Report(ended=Pass.STANDBY, wanted=wanted)
        try:
            # Ours from here on. What is there is looked at afterwards, so that no other controller changes it.
            wanted = replace(wanted, owner=self.id, owned_until=self.now() + OWNED_S)
            generation = store(path, wanted, generation)
            there = tuple(self.slices.all())
            bad = self.bad([each.name for each in there if each.phase is Phase.UP])
            decision = decide(self.cluster, wanted, there, self.now(), joined=self.joined(), bad=bad)
            if decision.wanted != wanted:
                # Before anything is done: a slice of an incarnation that no file has would be nobody's.
                store(path, decision.wanted, generation)
        except ConflictError:
            return Report(ended=Pass.CONFLICT, wanted=wanted)
        return self._do(decision, there)

    def begin(self) -> None:
        """Create the file of wanted slices, unless it exists."""
        path = path_of(self.cluster)
        if load(path)[1] is None:
            begin(path, self.cluster, [each.name for each in self.slices.all()])

    def release(self) -> None:
        """Let another controller work at once."""
        path = path_of(self.cluster)
        wanted, generation = load(path)
        if wanted.owner == self.id:
            try:
                store(path, replace(wanted, owner="", owned_until=0.0), generation)
            except ConflictError:
                log.info("%s was changed by another process; it is released in %.0f s", path, OWNED_S)

    def _do(self, decision: Decision, there: tuple[Queued, ...]) -> Report:
        done: list[Action] = []
        refused: list[str] = []
        for action in decision.actions:
            if self.now() >= decision.wanted.owned_until:  # another controller may work from now on
                log.warning("The pass took longer than %.0f s, and ends here", OWNED_S)
                break
            try:
                if action.do is Do.DELETE:
                    self.slices.delete(action.name)
                else:
                    assert action.slot is not None
                    self.slices.create(action.name, request_of(self.cluster, action.slot))
            except GoogleError as error:
                refused.append(str(error))
                log.warning("%s %s: %s", action.do.value, action.name, error)
            else:
                done.append(action)
                log.info("%s %s%s", action.do.value, action.name, f": {action.why}" if action.why else "")
        return Report(
            ended=Pass.DONE,
            wanted=decision.wanted,
            there=there,
            done=tuple(done),
            replaced=decision.replaced,
            refused=tuple(refused),
        )

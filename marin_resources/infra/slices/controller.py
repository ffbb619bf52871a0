"""The controller of a cluster's slices: it reads the state, decides, stores the decision and carries it out, in a loop.

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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.google import GoogleError
from marin_resources.infra.slices.decide import Action, Decision, Do, after_refusals, decide
from marin_resources.infra.slices.desired_state import Wanted, begin, change, load, path_of, store
from marin_resources.infra.slices.queued_resources import Phase, Queued, Slices
from marin_resources.infra.slices.request import request_of
from marin_resources.storage.control.protocol import ConflictError

log = logging.getLogger(__name__)

OWNED_S = 300.0
"""A controller that has not renewed its entry for this long is replaced by another one."""
Joined = Callable[[], Mapping[str, int] | None]
Bad = Callable[[Sequence[str]], Mapping[str, str]]
Drain = Callable[[Sequence[str]], Collection[str] | None]


class Pass(enum.Enum):
    """The end of one pass."""

    DONE = "done"
    STANDBY = "another controller works"
    CONFLICT = "the wanted slices were changed meanwhile"


@dataclass(frozen=True, kw_only=True)
class Report:
    """The observations and actions of one pass."""

    ended: Pass
    wanted: Wanted
    there: tuple[Queued, ...] = ()
    done: tuple[Action, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    refused: tuple[str, ...] = ()
    """A sentence for each action that Google refused."""
    drained: tuple[tuple[str, str], ...] = ()
    """(name of a slice whose steps leave it from now on, the reason)"""
    doubtful: str = ""
    """The reason why reports of bad hosts are not believed: one sentence, when that is new."""

    @property
    def settled(self) -> bool:
        """Whether nothing was to be done."""
        return self.ended is Pass.DONE and not (self.done or self.replaced or self.refused or self.drained)


@dataclass
class Controller:
    cluster: Cluster
    slices: Slices
    joined: Joined = lambda: None
    """Name of a slice -> its hosts that are nodes of the cluster; None if the cluster does not answer."""
    bad: Bad = lambda names: {}
    """Name of each of these slices that is to be replaced -> the reason."""
    drain: Drain = lambda names: ()
    """Drains the slices of these names; returns those that are in use, or None if the cluster does not answer."""
    now: Callable[[], float] = time.time
    id: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}")
    _doubtful: str = ""
    """The sentence that was reported last."""

    def step(self) -> Report:
        """One pass. Raises GoogleError if Google does not answer, WantedError and UnavailableError of the file."""
        path = path_of(self.cluster)
        target, generation = load(path)
        if generation is None:
            self.begin()
            target, generation = load(path)
        if target.owner not in ("", self.id) and self.now() < target.owned_until:
            return Report(ended=Pass.STANDBY, wanted=target)
        try:
            # Ours from here on. The slices are listed afterwards, so that no other controller changes them.
            target = replace(target, owner=self.id, owned_until=self.now() + OWNED_S)
            generation = store(path, target, generation)
            existing = tuple(self.slices.all())
            bad, doubtful = self._bad([slice_.name for slice_ in existing if slice_.phase is Phase.UP])
            in_use = self.drain(tuple(bad)) if bad else ()
            if in_use is None:
                bad, in_use = {}, ()
            joined = self.joined()
            decision = decide(self.cluster, target, existing, self.now(), joined=joined, bad=bad, in_use=in_use)
            if decision.wanted != target:
                # Before anything is done: a slice of an incarnation that no file has would be nobody's.
                store(path, decision.wanted, generation)
        except ConflictError:
            return Report(ended=Pass.CONFLICT, wanted=target)
        drained = _newly_drained(self.cluster, target, decision.wanted, bad)
        return replace(self._do(decision, existing), drained=drained, doubtful=doubtful)

    def _bad(self, up: Sequence[str]) -> tuple[Mapping[str, str], str]:
        """The slices to replace for a bad host, and a sentence if they are too many to be believed.

        An image or a driver that is broken fails on every slice: to replace them all would cure nothing.
        """
        bad, before = self.bad(up), self._doubtful
        self._doubtful = ""
        if len(bad) <= max(1, len(up) // 2):
            return bad, ""
        self._doubtful = (
            f"{len(bad)} of {len(up)} slices are reported for bad hosts, and none is replaced: more likely the image "
            f"or the steps are broken. A report says: {next(iter(bad.values()))}"
        )
        return {}, self._doubtful if self._doubtful != before else ""

    def begin(self) -> None:
        """Create the file of wanted slices, unless it exists."""
        path = path_of(self.cluster)
        if load(path)[1] is None:
            begin(path, self.cluster, [slice_.name for slice_ in self.slices.all()])

    def release(self) -> None:
        """Let another controller work at once."""
        path = path_of(self.cluster)
        target, generation = load(path)
        if target.owner == self.id:
            try:
                store(path, replace(target, owner="", owned_until=0.0), generation)
            except ConflictError:
                log.info("%s was changed by another process; it is released in %.0f s", path, OWNED_S)

    def _do(self, decision: Decision, existing: tuple[Queued, ...]) -> Report:
        done: list[Action] = []
        refused: dict[str, str] = {}
        owned_until = decision.wanted.owned_until
        for action in decision.actions:
            if self.now() >= owned_until:  # another controller may work from now on
                log.warning("The pass took longer than %.0f s, and ends here", OWNED_S)
                break
            try:
                if action.do is Do.DELETE:
                    self.slices.delete(action.name)
                else:
                    self._create(action, owned_until)
            except GoogleError as error:
                refused[action.name] = str(error)
                log.warning("%s %s: %s", action.do.value, action.name, error)
            else:
                done.append(action)
                log.info("%s %s%s", action.do.value, action.name, f": {action.why}" if action.why else "")
        target = self._note_refusals(refused) if refused else decision.wanted
        return Report(
            ended=Pass.DONE,
            wanted=target,
            there=existing,
            done=tuple(done),
            replaced=decision.replaced,
            refused=tuple(self._refusal(target, name, why) for name, why in refused.items()),
        )

    def _create(self, action: Action, owned_until: float) -> None:
        """Request a slice. Delete it again if its slot has another one by then: this process may have stood still
        inside the request, and another controller may have worked meanwhile."""
        assert action.slot is not None
        request = request_of(self.cluster, action.slot)
        self.slices.create(action.name, request, may_send=lambda: self.now() < owned_until)
        if self.now() >= owned_until:
            target, _ = load(path_of(self.cluster))
            if all(slot.name(self.cluster) != action.name for slot in target.slots):
                log.warning("%s was requested too late, and is deleted: its slot has another slice", action.name)
                self.slices.delete(action.name)

    def _note_refusals(self, refused: Mapping[str, str]) -> Wanted:
        """Store the time at which each of the requests is sent again."""

        def noted(target: Wanted) -> Wanted:
            return after_refusals(target, refused, self.now()) if target.owner == self.id else target

        return change(path_of(self.cluster), noted)

    def _refusal(self, target: Wanted, name: str, why: str) -> str:
        noted = target.refusal_of(name)
        if noted is None:
            return why
        times = "once" if noted.count == 1 else f"{noted.count} times"
        return f"{why} Refused {times} for {name}; again in {noted.not_before - self.now():.0f} s."


def _newly_drained(
    cluster: Cluster, before: Wanted, after: Wanted, bad: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    drained_before = {slot.name(cluster) for slot in before.slots if slot.draining_since is not None}
    names = [slot.name(cluster) for slot in after.slots if slot.draining_since is not None]
    return tuple((name, bad[name]) for name in names if name in bad and name not in drained_before)

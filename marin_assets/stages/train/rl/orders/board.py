"""The board of the free order: which units are sampled, with which weights, and which groups wait for a batch.

Threads of samplers take units from it, and the training takes batches. Groups that are being sampled or wait are at
most (staleness + 1) batches, less the one that is in training. So of all that were begun and not left out at most
(staleness + version + 1) batches exist at each version of the weights, which is AReaL's bound (Fu et al. 2025), and a
group that is done in time is in a batch before it is too old.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from marin_assets.stages.train.rl.batch import TOO_OLD, mark_unused
from marin_assets.stages.train.rl.config import ReplayBuffer, TrainRlConfig
from marin_assets.stages.train.rl.orders.ledger import Entry, Named
from marin_assets.stages.train.rl.plan import Unit, UnitKey, unit_of, units_per_batch
from marin_assets.stages.train.rl.rollout import Rollout
from marin_assets.stages.train.rl.sampling.samplers import Work


@dataclass(frozen=True, kw_only=True)
class SampledGroup:
    """A group with its rollouts, and the number of batches that it has been in."""

    id: str
    unit: int
    weights_step: int
    rollouts: tuple[Rollout, ...]
    uses: int = 0

    @property
    def turn(self) -> tuple[int, int, str]:
        """Groups are in batches by this: those of fewest uses first, then the oldest."""
        return self.uses, self.weights_step, self.id


@dataclass(frozen=True, kw_only=True)
class Taken:
    """The batch of a step."""

    entry: Entry
    rollouts: dict[str, tuple[Rollout, ...]]
    """Those of the groups that the entry names, by their ids."""
    whole_units: list[UnitKey]
    """Units all of whose groups are in entries by now."""
    work: Work
    """The sampling of the units that have ended since the last batch."""


class Board:
    """All methods may be called from any thread."""

    def __init__(
        self,
        config: TrainRlConfig,
        *,
        step: int = 0,
        next_unit: int = 0,
        lost_units: Iterable[int] = (),
        groups: Sequence[SampledGroup] = (),
    ) -> None:
        """`step`: the number of batches so far. `lost_units` were begun before, and are begun again. `groups` are
        sampled."""
        self._config = config
        self._buffer = buffer_of(config)
        self._step, self._version = step, step - 1
        self._next, self._lost = next_unit, deque(sorted(lost_units))
        self._open: dict[int, Unit] = {}
        self._groups: dict[str, SampledGroup] = {}
        self._left_out: list[tuple[SampledGroup, str]] = []
        """Since the last batch."""
        self._unnamed = Counter(group.unit for group in groups if group.uses == 0)
        """Groups of a unit that are in no entry yet."""
        for group in groups:
            self._add(group)
        self._work = Work(seconds=0.0, tokens=0)
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._closed = False

    def has_room(self) -> bool:
        """Whether another unit may be begun. One that has become too old will be in no batch, and takes no room."""
        with self._changed:
            usable = sum(self._is_usable(unit.weights_step) for unit in self._open.values())
            waiting = sum(group.uses == 0 and self._is_usable(group.weights_step) for group in self._groups.values())
            batches = self._config.staleness + self._version + 1 - self._step
            return usable * self._config.groups_per_unit + waiting < batches * self._config.groups

    def is_ready(self) -> bool:
        """Whether the next step has a batch. Groups that are too old by now are left out."""
        with self._changed:
            for group in list(self._groups.values()):
                if not self._is_usable(group.weights_step):
                    del self._groups[group.id]
                    if group.uses == 0:
                        self._left_out.append((group, TOO_OLD))
            equal = sum(reason == "" for _, reason in self._left_out)
            enough = self._config.groups + (self._config.most_extra_groups or 0)
            return len(self._groups) >= self._config.groups or len(self._groups) + equal >= enough

    def publish(self, version: int) -> None:
        """Let units be sampled with these weights, which are written."""
        with self._changed:
            self._version = version
            self._changed.notify_all()

    def next_unit(self) -> Unit | None:
        """Wait until a unit may be begun, and return it; None if no more are."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self.has_room())
            if self._closed:
                return None
            number = self._lost.popleft() if self._lost else self._next
            self._next = max(self._next, number + 1)
            step, place = divmod(number, units_per_batch(self._config))
            self._open[number] = unit_of(self._config, step, place, self._version)
            return self._open[number]

    def end_unit(self, unit: Unit, rollouts: Iterable[Rollout], work: Work) -> None:
        """Take the groups of a unit that was sampled."""
        with self._changed:
            number = number_of(self._config, unit)
            del self._open[number]
            self._work += work
            groups = groups_of(self._config, unit, rollouts)
            self._unnamed[number] = len(groups)
            for group in groups:
                self._add(group)
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Let the training have an error of a sampler."""
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def close(self) -> None:
        """Let no more units be begun."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def oldest_weights(self) -> int:
        """The fewest updates of weights that a unit is being sampled with, or will be."""
        with self._changed:
            return min((unit.weights_step for unit in self._open.values()), default=self._version)

    def take(self) -> Taken:
        """Wait until the next step has a batch, and return it. Raises the error of a sampler."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or self.is_ready())
            if self._failure is not None:
                raise self._failure
            batch = sorted(self._groups.values(), key=lambda group: group.turn)[: self._config.groups]
            taken = self._taken(batch)
            self._count_uses(batch)
            self._left_out, self._work = [], Work(seconds=0.0, tokens=0)
            self._step += 1
            self._changed.notify_all()
            return taken

    def _add(self, group: SampledGroup) -> None:
        if self._config.most_extra_groups is not None and not any(rollout.used for rollout in group.rollouts):
            self._left_out.append((group, ""))
        else:
            self._groups[group.id] = group

    def _is_usable(self, weights_step: int) -> bool:
        return weights_step >= self._step - self._config.staleness

    def _taken(self, batch: list[SampledGroup]) -> Taken:
        lost = [*self._lost, *(n for n, unit in self._open.items() if self._is_usable(unit.weights_step))]
        entry = Entry(
            step=self._step,
            batch=tuple(Named(group.id, group.weights_step) for group in batch if group.uses == 0),
            again=tuple(Named(group.id, group.weights_step) for group in batch if group.uses > 0),
            left_out=tuple(Named(group.id, group.weights_step, reason) for group, reason in self._left_out),
            next_unit=self._next,
            open_units=tuple(sorted(lost)),
        )
        left_out = [group for group, _ in self._left_out]
        return Taken(
            entry=entry,
            rollouts={group.id: group.rollouts for group in [*batch, *left_out]},
            whole_units=self._named_wholly([*(group for group in batch if group.uses == 0), *left_out]),
            work=self._work,
        )

    def _named_wholly(self, groups: Iterable[SampledGroup]) -> list[UnitKey]:
        """The units of which these groups are the last."""
        units = []
        for group in groups:
            self._unnamed[group.unit] -= 1
            if self._unnamed[group.unit] == 0:
                del self._unnamed[group.unit]
                step, place = divmod(group.unit, units_per_batch(self._config))
                units.append(UnitKey(step=step, number=place, weights_step=group.weights_step))
        return units

    def _count_uses(self, batch: list[SampledGroup]) -> None:
        """Keep the groups of a batch for others, as the buffer allows."""
        for group in batch:
            self._groups[group.id] = replace(group, uses=group.uses + 1)
            if group.uses + 1 == self._buffer.most_uses:
                del self._groups[group.id]
        used = [group for group in self._groups.values() if group.uses]
        used.sort(key=lambda group: (group.uses, -group.weights_step, group.id))
        for group in used[self._buffer.capacity or len(used) :]:
            del self._groups[group.id]


def buffer_of(config: TrainRlConfig) -> ReplayBuffer:
    return config.replay_buffer or ReplayBuffer(most_uses=1, capacity=None)


def number_of(config: TrainRlConfig, unit: UnitKey) -> int:
    """The number of a unit among all of a training."""
    return unit.step * units_per_batch(config) + unit.number


def groups_of(config: TrainRlConfig, unit: UnitKey, rollouts: Iterable[Rollout]) -> list[SampledGroup]:
    """The groups of a unit that was sampled, with those rollouts marked that no batch trains on."""
    groups: dict[str, list[Rollout]] = {}
    for rollout in mark_unused(config, list(rollouts)):
        groups.setdefault(rollout.group_id, []).append(rollout)
    number, weights_step = number_of(config, unit), unit.weights_step
    return [
        SampledGroup(id=name, unit=number, weights_step=weights_step, rollouts=tuple(group))
        for name, group in groups.items()
    ]

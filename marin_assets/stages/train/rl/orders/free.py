"""The free order: samplers take the newest weights, and a batch the oldest groups that are done.

No batch waits for a slow unit, as long as others are done, and each run of a training differs. What it trains on is
written before: a batch is named in the ledger, and its rollouts are in the table of the first step that has them. So a
resumed training makes the same batches again, as far as the ledger has them, and continues with the rollouts that wait.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.batch import require_used
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.orders.board import Board, SampledGroup, buffer_of, groups_of, number_of
from marin_assets.stages.train.rl.orders.ledger import Entry, Named, read_entries, write_entry
from marin_assets.stages.train.rl.plan import UnitKey
from marin_assets.stages.train.rl.rollout import Rollout, read_step, unused, write_step
from marin_assets.stages.train.rl.sampling.sampler import DamagedUnitError, read_unit, remove_unit, stored_units
from marin_assets.stages.train.rl.sampling.samplers import Samplers, Work
from marin_assets.stages.train.rl.weights.packing import packed
from marin_assets.stages.train.rl.weights.publication import weights_path
from marin_resources.storage.files import exists

LEFT_AT_THE_END = "left_at_the_end"

log = logging.getLogger(__name__)


class FreeOrder:
    """An Order."""

    def __init__(self, config: TrainRlConfig, samplers: Samplers, first_step: int) -> None:
        self._config, self._samplers = config, samplers
        self._earlier = read_entries(config.output_path, first_step)
        """Batches of an earlier attempt."""
        self._board: Board | None = None
        self.work: Work | None = None

    def begin(self, step: int, model: Any) -> None:
        path = self._config.output_path
        if step not in self._earlier or exists(weights_path(path, step)):
            self._samplers.weights.publish(lambda: packed(model), step)
        if step in self._earlier:
            return
        is_first = self._board is None
        self._board = self._board or restored_board(self._config, step)
        self._board.publish(step)
        if is_first:
            self._samplers.keep_sampling(self._board)

    def rollouts(self, step: int) -> list[Rollout]:
        path = self._config.output_path
        if (entry := self._earlier.get(step)) is not None:
            if (table := read_step(path, step)) is None:  # it was killed before
                write_step(path, step, table := table_of(step, entry.new, _sampled(self._config, entry)))
            return [*table, *groups_again(entry, lambda step: read_step(path, step))]
        assert self._board is not None
        taken = self._board.take()
        write_entry(path, taken.entry)
        table = table_of(step, taken.entry.new, taken.rollouts)
        write_step(path, step, table)
        for unit in taken.whole_units:
            remove_unit(path, unit)
        self.work = taken.work
        rollouts = [*table, *(rollout for named in taken.entry.again for rollout in taken.rollouts[named.group])]
        require_used(rollouts)
        return rollouts

    def end(self, step: int) -> None:
        if self._board is not None:
            self._samplers.weights.remove_before(self._board.oldest_weights())

    def close(self) -> None:
        if self._board is not None:
            self._board.close()


def table_of(
    step: int, names: Iterable[Named], groups: Mapping[str, Sequence[Rollout]], *, first: int = 0
) -> list[Rollout]:
    """The rollouts of groups as the table of a step has them. `first`: number of the first group."""
    table = []
    for number, named in enumerate(names, first):
        for rollout in groups[named.group]:
            placed = replace(rollout, step=step, group=number)
            table.append(unused(placed, named.reason) if named.reason and placed.used else placed)
    return table


def groups_again(entry: Entry, read_table: Callable[[int], Sequence[Rollout] | None]) -> list[Rollout]:
    """The rollouts of groups that earlier batches had, from the tables of these."""
    by_group: dict[str, list[Rollout]] = {}
    if entry.again:
        for step in range(min(named.weights_step for named in entry.again), entry.step):
            by_group |= _by_group(read_table(step) or ())
    return [rollout for named in entry.again for rollout in by_group[named.group]]


def restored_board(config: TrainRlConfig, step: int) -> Board:
    """The board at a step that no attempt has begun. The groups that are sampled and in no batch wait in it."""
    path, units = config.output_path, stored_units(config.output_path)
    oldest = min([step - config.staleness - 1, *(unit.weights_step for unit in units)])
    entries = read_entries(path, oldest)
    waiting = []
    for unit in list(units):
        try:
            groups = _unnamed(config, unit, entries.values())
        except DamagedUnitError as error:
            log.warning("It is sampled again: %s", error)
            units.remove(unit)
            groups = []
        waiting += groups
        if not groups:
            remove_unit(path, unit)
    if step > 0 and step - 1 not in entries:
        raise TrainError(f"The ledger of {path!r} has no step {step - 1}. Compute the step again from its beginning.")
    next_unit, open_units = (entries[step - 1].next_unit, entries[step - 1].open_units) if step else (0, ())
    numbers = {number_of(config, unit) for unit in units}
    end = max([next_unit, *(number + 1 for number in numbers)])
    return Board(
        config,
        step=step,
        next_unit=end,
        lost_units={*open_units, *range(next_unit, end)} - numbers,
        groups=[*waiting, *_used_groups(config, step, entries)],
    )


def keep_left(config: TrainRlConfig) -> None:
    """Add the rollouts that were in no batch to the table of the last step. Call it when nothing samples any more."""
    path, last = config.output_path, config.num_train_steps - 1
    units = stored_units(path)
    entries = read_entries(path, min((unit.weights_step for unit in units), default=0))
    table = list(read_step(path, last) or ()) if units else []
    present = {rollout.group_id for rollout in table}  # of a call that was killed
    waiting = [group for unit in units for group in _unnamed(config, unit, entries.values()) if group.id not in present]
    if waiting:
        names = [Named(group.id, group.weights_step, LEFT_AT_THE_END) for group in waiting]
        groups = {group.id: group.rollouts for group in waiting}
        first = max((rollout.group + 1 for rollout in table), default=0)
        write_step(path, last, [*table, *table_of(last, names, groups, first=first)])


def _unnamed(config: TrainRlConfig, unit: UnitKey, entries: Iterable[Entry]) -> list[SampledGroup]:
    """The groups of a stored unit that are in no entry."""
    names = {named.group for entry in entries for named in entry.new}
    groups = groups_of(config, unit, read_unit(config.output_path, unit))
    return [group for group in groups if group.id not in names]


def _used_groups(config: TrainRlConfig, step: int, entries: Mapping[int, Entry]) -> list[SampledGroup]:
    """The groups of batches before a step that further ones may have."""
    most_uses, groups = buffer_of(config).most_uses, list[SampledGroup]()
    uses = Counter(named.group for entry in entries.values() for named in (*entry.batch, *entry.again))
    for earlier in range(max(step - config.staleness, 0), step) if most_uses > 1 else ():
        for name, rollouts in _by_group(read_step(config.output_path, earlier) or ()).items():
            weights_step = rollouts[0].weights_step
            if 0 < uses[name] < most_uses and weights_step >= step - config.staleness:
                groups.append(
                    SampledGroup(id=name, unit=-1, weights_step=weights_step, rollouts=tuple(rollouts), uses=uses[name])
                )
    return groups


def _sampled(config: TrainRlConfig, entry: Entry) -> dict[str, Sequence[Rollout]]:
    """The rollouts of an entry whose table is not written, from the units that are stored."""
    groups: dict[str, Sequence[Rollout]] = {}
    for named in entry.new:
        if named.group not in groups:
            step, group = map(int, named.group.split("-"))
            key = UnitKey(step=step, number=group // config.groups_per_unit, weights_step=named.weights_step)
            sampled = groups_of(config, key, read_unit(config.output_path, key))
            groups |= {group.id: group.rollouts for group in sampled}
    return groups


def _by_group(rollouts: Iterable[Rollout]) -> dict[str, list[Rollout]]:
    groups: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        groups.setdefault(rollout.group_id, []).append(rollout)
    return groups

"""The board of the free order: what is begun, which groups are a batch, and what is left out."""

from __future__ import annotations

import heapq
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rl_training import rl_config

from marin_assets.stages.train.rl.batch import TOO_OLD
from marin_assets.stages.train.rl.config import ReplayBuffer, TrainRlConfig
from marin_assets.stages.train.rl.orders.board import Board, Taken, number_of
from marin_assets.stages.train.rl.orders.ledger import Named
from marin_assets.stages.train.rl.plan import Unit
from marin_assets.stages.train.rl.rollout import Rollout
from marin_assets.stages.train.rl.sampling.samplers import Work

WORK = Work(seconds=1.0, tokens=10)


def config_of(**changes: Any) -> TrainRlConfig:
    return rl_config("model", Path("output"), order="free", samplers=2, **changes)


def rollouts_of(unit: Unit, *, is_equal: bool = False) -> list[Rollout]:
    """Rollouts of a unit, whose rewards differ in each group."""
    return [
        Rollout(id=f"{unit.step:07}-{group.number:04}-{member:04}", step=unit.step, group=group.number, member=member,
                lesson=group.lesson, weights_step=unit.weights_step, weights_digest="", example={}, prompt="",
                answer="", prompt_ids=[1], ids=[2], logprobs=[-1.0], mask=[1], finish="stop",
                reward=0.0 if is_equal else float(member))
        for group in unit.groups
        for member in range(len(group.seeds))
    ]  # fmt: skip


def begun(board: Board) -> list[Unit]:
    """All units that may be begun now."""
    units = []
    while board.has_room():
        unit = board.next_unit()
        assert unit is not None
        units.append(unit)
    return units


def ids(named: tuple[Named, ...]) -> list[str]:
    return [each.group for each in named]


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_units_that_are_begun_are_at_most_the_batches_of_the_bound(staleness: int) -> None:
    config, total = config_of(staleness=staleness), 0
    board = Board(config)
    for version in range(5):
        board.publish(version)
        for unit in begun(board):
            assert unit.weights_step == version
            board.end_unit(unit, rollouts_of(unit), WORK)
            total += config.groups_per_unit
        assert total == (staleness + version + 1) * config.groups
        taken = board.take()
        assert all(version - named.weights_step <= staleness for named in taken.entry.batch)
        assert taken.entry.left_out == ()
        assert begun(board) == []  # the batch that is in training counts


def test_a_batch_has_the_oldest_groups_and_waits_for_no_slow_unit() -> None:
    board = Board(config_of(staleness=2))
    board.publish(0)
    slow, *others = begun(board)
    for unit in reversed(others):
        board.end_unit(unit, rollouts_of(unit), WORK)
    batches = []
    for version in range(3):
        board.publish(version)
        for unit in begun(board):
            board.end_unit(unit, rollouts_of(unit), WORK)
        batches.append(ids(board.take().entry.batch))
    assert batches[0] == ["0000000-0002", "0000000-0003", "0000001-0000", "0000001-0001"]
    assert batches[1] == ["0000001-0002", "0000001-0003", "0000002-0000", "0000002-0001"]
    board.publish(3)
    assert len(begun(board)) == 3  # it can be in no batch any more, and so another is begun in its place
    board.end_unit(slow, rollouts_of(slow), WORK)
    taken = board.take()
    assert [(named.group, named.reason) for named in taken.entry.left_out] == [
        ("0000000-0000", TOO_OLD), ("0000000-0001", TOO_OLD)]  # fmt: skip
    assert slow.number in {unit.number for unit in taken.whole_units if unit.step == 0}


def test_of_examples_that_take_up_to_five_times_as_long_hardly_any_is_left_out() -> None:
    config, draw = config_of(staleness=2, groups=8, groups_per_unit=1), random.Random(0)
    board, clock, left_out, steps = Board(config), 0.0, 0, 400
    lessons: Counter[str] = Counter()
    running: list[tuple[float, int, Unit]] = []
    board.publish(0)
    for step in range(steps):
        while True:
            while len(running) < 6 and board.has_room():
                unit = board.next_unit()
                assert unit is not None
                slow = unit.groups[0].lesson == "turns"
                takes = draw.uniform(3, 5) if slow else draw.uniform(0.5, 1.5)
                heapq.heappush(running, (clock + takes, number_of(config, unit), unit))
            if board.is_ready():
                break
            clock, _, unit = heapq.heappop(running)
            board.end_unit(unit, rollouts_of(unit), WORK)
        taken = board.take()
        left_out += len(taken.entry.left_out)
        lessons.update(taken.rollouts[name][0].lesson for name in ids(taken.entry.batch))
        clock += 4.0  # the update
        while running and running[0][0] <= clock:
            _, _, unit = heapq.heappop(running)
            board.end_unit(unit, rollouts_of(unit), WORK)
        board.publish(step + 1)
    assert left_out <= 0.01 * steps * config.groups
    assert lessons["turns"] / lessons.total() == pytest.approx(0.5, abs=0.02)


def test_groups_of_equal_rewards_are_left_out_and_others_are_begun_up_to_the_bound() -> None:
    config = config_of(staleness=0, most_extra_groups=4)
    board = Board(config)
    board.publish(0)
    first, second = begun(board)
    board.end_unit(first, rollouts_of(first, is_equal=True), WORK)
    board.end_unit(second, rollouts_of(second), WORK)
    assert not board.is_ready()
    [third] = begun(board)
    board.end_unit(third, rollouts_of(third), WORK)
    taken = board.take()
    assert ids(taken.entry.batch) == ["0000000-0002", "0000000-0003", "0000001-0000", "0000001-0001"]
    assert ids(taken.entry.left_out) == ["0000000-0000", "0000000-0001"]
    board.publish(1)
    for _ in range(4):
        assert not board.is_ready()
        unit = board.next_unit()
        assert unit is not None
        board.end_unit(unit, rollouts_of(unit, is_equal=True), WORK)
    assert board.take().entry.batch == ()


def test_a_buffer_gives_groups_again_where_new_ones_are_too_few() -> None:
    config = config_of(staleness=2, replay_buffer=ReplayBuffer(most_uses=2, capacity=None))
    board = Board(config)
    board.publish(0)
    units = begun(board)
    for unit in units[:2]:
        board.end_unit(unit, rollouts_of(unit), WORK)
    first = board.take()
    assert len(first.entry.batch) == 4
    board.publish(1)
    board.end_unit(units[2], rollouts_of(units[2]), WORK)
    second = board.take()
    assert ids(second.entry.batch) == ["0000001-0000", "0000001-0001"]
    assert ids(second.entry.again) == ["0000000-0000", "0000000-0001"]
    board.publish(2)
    third = board.take()
    assert ids(third.entry.again) == ["0000000-0002", "0000000-0003", "0000001-0000", "0000001-0001"]
    entries = [taken.entry for taken in (first, second, third)]
    assert set(Counter(name for entry in entries for name in ids((*entry.batch, *entry.again))).values()) == {2}
    assert not board.is_ready()


def test_a_buffer_keeps_at_most_its_capacity() -> None:
    config = config_of(staleness=3, replay_buffer=ReplayBuffer(most_uses=4, capacity=1))
    board = Board(config)
    board.publish(0)
    for unit in begun(board)[:3]:
        board.end_unit(unit, rollouts_of(unit), WORK)
    board.take()
    assert not board.is_ready()  # two new groups, and one that was kept
    board.publish(1)
    unit = board.next_unit()
    assert unit is not None
    board.end_unit(unit, rollouts_of(unit)[:4], WORK)
    taken = board.take()
    assert (len(taken.entry.batch), len(taken.entry.again)) == (3, 1)


def test_an_error_of_a_sampler_ends_the_wait_for_a_batch() -> None:
    board = Board(config_of())
    board.publish(0)
    errors: list[BaseException] = []

    def take() -> Taken | None:
        try:
            return board.take()
        except ValueError as error:
            errors.append(error)
            return None

    waiting = threading.Thread(target=take)
    waiting.start()
    board.fail(ValueError("no room"))
    waiting.join(10)
    assert [str(error) for error in errors] == ["no room"]
    board.close()
    assert board.next_unit() is None

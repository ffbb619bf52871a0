"""The free order: batches are in the ledger before they are trained on, and a replay of them gives the same bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rl_environments import Slow, Turns
from rl_ledgers import require_exact, require_same_replay
from rl_training import rl_config, run_to

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.rl.config import ReplayBuffer, TrainRlConfig
from marin_assets.stages.train.rl.lessons import lesson_of
from marin_assets.stages.train.rl.plan import unit_of
from marin_assets.stages.train.rl.sampling import samplers
from marin_assets.stages.train.rl.sampling.sampler import open_sampler_here
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_assets.stages.train.rl.weights.publication import opened_publication
from marin_assets.step.values import unwrap_versioned_value

FREE: dict[str, Any] = {"order": "free", "samplers": 2, "staleness": 2}


def test_a_replay_of_a_training_gives_the_same_bytes_without_sampling(
    model: str, plain: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marin_assets.stages.train.rl.train_rl.opened_samplers", None)
    require_same_replay(rl_config(model, plain[0]), tmp_path)


@contextmanager
def sampler_in_a_thread(config: TrainRlConfig) -> Iterator[Any]:
    """The samplers of a training, with a sampler in this process in the place of those in others."""
    with (
        opened_publication(config, samplers.LOOPBACK) as weights,
        open_sampler_here(config) as sampler,
        ThreadPoolExecutor(1) as threads,
    ):
        processes = SimpleNamespace(call=lambda method, *arguments: getattr(sampler, method)(*arguments))
        apart = samplers._Apart(config, weights, processes, threads)
        try:
            yield apart
        finally:
            apart.close()


def test_what_was_trained_on_in_the_free_order_is_in_the_ledger_and_gives_the_same_bytes_again(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marin_assets.stages.train.rl.train_rl.opened_samplers", sampler_in_a_thread)
    buffer = ReplayBuffer(most_uses=2, capacity=None)
    config = rl_config(model, tmp_path / "free", **{**FREE, "samplers": 1}, replay_buffer=buffer, num_train_steps=4)
    result = train_rl(config)
    rollouts = require_exact(config)
    assert result["rollouts"] == len(rollouts) == result["rollouts_used"] + sum(result["rollouts_unused"].values())
    require_same_replay(config, tmp_path / "replay")


@pytest.mark.long
def test_batches_of_the_free_order_are_in_the_ledger_and_a_replay_gives_the_same_bytes(
    model: str, tmp_path: Path
) -> None:
    config = rl_config(model, tmp_path / "free", **FREE)
    result = train_rl(config)
    rollouts = require_exact(config)
    assert result["rollouts"] == len(rollouts) == result["rollouts_used"] + sum(result["rollouts_unused"].values())
    assert result["rollouts_used"] == 6 * 4 * 4
    assert set(result["rollouts_unused"]) <= {"left_at_the_end", "too_old"}
    assert result["mismatch_max"] < 1e-5
    assert all(0 <= row["rl/staleness"] <= 2 for row in read_metrics(f"{config.output_path}/metrics.jsonl"))
    require_same_replay(config, tmp_path / "replay")
    again = train_rl(config)  # as after a kill at its very end
    assert (again["rollouts"], again["resumed_from_step"]) == (result["rollouts"], 5)


@pytest.mark.long
def test_a_killed_training_trains_on_the_batches_of_its_ledger_and_continues(model: str, tmp_path: Path) -> None:
    config = rl_config(model, tmp_path / "free", **FREE, steps_per_checkpoint=3)
    assert run_to(config, kill_at=60) is None
    assert run_to(config)
    require_exact(config)
    require_same_replay(config, tmp_path / "replay")


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"replay_buffer": ReplayBuffer(most_uses=2, capacity=None), "samplers": 1},
        {"most_extra_groups": 4, "staleness": 1},
    ],
    ids=["plain", "buffer", "extra"],
)
def test_it_is_killed_at_drawn_moments_and_keeps_to_its_ledger(
    changes: dict[str, Any], model: str, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {**FREE, "steps_per_checkpoint": 2, **changes}
    draw, kills, number = random.Random(str(changes)), 0, 0
    moments = run_to(rl_config(model, tmp_path / "whole", **settings))
    assert moments
    while kills < 10:
        config = rl_config(model, tmp_path / str(number), **settings)
        while run_to(config, kill_at=draw.randrange(1, moments // 2)) is None:
            kills += 1
        require_exact(config)
        require_same_replay(config, tmp_path / f"replay{number}")
        number += 1


@pytest.mark.long
def test_a_slow_unit_does_not_hold_the_batches_back(model: str, tmp_path: Path) -> None:
    config = rl_config(model, tmp_path, **FREE)
    slow = unit_of(config, 0, 0, 0).groups[0]
    until = tmp_path / "rollouts/step-0000003.parquet"
    lessons = unwrap_versioned_value({"slow": lesson_of(Slow(index=slow.index, until=str(until)))})
    result = train_rl(replace(config, lessons=lessons, method_timeout_s=500.0))
    rollouts = require_exact(replace(config, lessons=lessons))
    assert result["rollouts_unused"]["too_old"] >= 8
    assert {rollout.reason for rollout in rollouts if rollout.id.startswith("0000000-0000")} == {"too_old"}


@pytest.mark.long
def test_a_buffer_trains_on_rollouts_again_as_often_as_it_allows(model: str, tmp_path: Path) -> None:
    buffer = ReplayBuffer(most_uses=3, capacity=8)
    config = rl_config(model, tmp_path / "free", **{**FREE, "samplers": 1}, replay_buffer=buffer, num_train_steps=8)
    second = unit_of(config, 1, 0, 0).groups[0]
    until = tmp_path / "free/rollouts/step-0000002.parquet"  # the first batch is the one for three steps
    lessons = unwrap_versioned_value({"slow": lesson_of(Slow(index=second.index, until=str(until)))})
    config = replace(config, lessons=lessons, method_timeout_s=500.0)
    result = train_rl(config)
    rollouts = require_exact(config)
    assert len({rollout.id for rollout in rollouts if rollout.used}) == result["rollouts_used"] <= 6 * 4 * 4
    require_same_replay(config, tmp_path / "replay")


def test_a_replay_of_what_is_no_finished_training_is_a_sentence(
    model: str, plain: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    with pytest.raises(TrainError, match=r"replay_of is '.*nothing', which has no rollouts of step 0"):
        train_rl(rl_config(model, tmp_path / "a", replay_of=str(tmp_path / "nothing")))
    with pytest.raises(TrainError, match=r"no rollouts of step 6\. Expected the output of a finished training of 7"):
        train_rl(rl_config(model, tmp_path / "b", replay_of=str(plain[0]), num_train_steps=7))
    with pytest.raises(TrainError, match=r"whose ledger has no step 0, and order is 'free'"):
        train_rl(rl_config(model, tmp_path / "d", replay_of=str(plain[0]), order="free"))
    with pytest.raises(TrainError, match=r"has 16 rollouts of up to \d+ tokens, expected at most 8"):
        train_rl(rl_config(model, tmp_path / "c", replay_of=str(plain[0]), groups=2))


@pytest.mark.long
def test_a_damaged_ledger_is_named(model: str, tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger/step-0000000.json").write_text('{"step": 0}')
    lessons = unwrap_versioned_value({"turns": lesson_of(Turns())})
    with pytest.raises(TrainError, match=r"ledger at '.*step-0000000.json' is damaged \('batch'\)"):
        train_rl(rl_config(model, tmp_path, **FREE, lessons=lessons))

"""Holds a finished training in the free order to its ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from rl_training import results_of

from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.orders.ledger import WHOLE, Entry, read_entries
from marin_assets.stages.train.rl.rollout import Rollout, read_rollouts
from marin_assets.stages.train.rl.train_rl import train_rl
from marin_resources.storage.files import list_files, read_bytes
from marin_resources.storage.paths import join


def require_exact(config: TrainRlConfig) -> list[Rollout]:
    """Return all rollouts. Each is in the tables once, used or with a reason; each used group is in as many batches as
    the buffer allows at most, in none that is too late; and batches are whole, but for
    a lack of groups that differ."""
    entries, rollouts = read_entries(config.output_path), read_rollouts(config.output_path)
    assert sorted(entries) == list(range(config.num_train_steps))
    assert len({rollout.id for rollout in rollouts}) == len(rollouts)
    assert all(rollout.used == (rollout.reason == "") for rollout in rollouts)
    groups = {rollout.group_id: rollout for rollout in rollouts}
    assert Counter(rollout.group_id for rollout in rollouts).total() == len(groups) * config.group_size
    uses = Counter(name for entry in entries.values() for name in names_of(entry))
    most_uses = 1 if config.replay_buffer is None else config.replay_buffer.most_uses
    assert max(uses.values()) <= most_uses
    assert {rollout.group_id for rollout in rollouts if rollout.used} <= set(uses)
    for step, entry in entries.items():
        assert len(set(names_of(entry))) == config.groups or _has_no_more(config, entry)
        assert all(0 <= step - groups[name].weights_step <= config.staleness for name in names_of(entry))
        assert all(groups[named.group].step == step for named in (*entry.batch, *entry.left_out))
    files = [file.removeprefix(config.output_path).lstrip("/") for file in list_files(config.output_path)]
    assert not {"weights", "units", "ledger"} & {file.partition("/")[0] for file in files}
    return rollouts


def require_same_replay(config: TrainRlConfig, output: Path) -> None:
    """A training on the stored rollouts of another has its weights, and stores the same."""
    result = train_rl(replace(config, output_path=str(output), replay_of=config.output_path))
    assert result["same_as_replayed"]
    assert results_of(output) == results_of(config.output_path)
    assert ledger_of(str(output)) == ledger_of(config.output_path)
    assert (ledger_of(str(output)) is not None) == (config.order == "free")


def ledger_of(output: str) -> bytes | None:
    try:
        return read_bytes(join(output, WHOLE))
    except FileNotFoundError:
        return None


def _has_no_more(config: TrainRlConfig, entry: Entry) -> bool:
    """Whether the step has left out as many groups of equal rewards as it may have more."""
    equal = [named for named in entry.left_out if not named.reason]
    return len(names_of(entry)) + len(equal) >= config.groups + (config.most_extra_groups or 0) > config.groups


def names_of(entry: Entry) -> list[str]:
    return [named.group for named in (*entry.batch, *entry.again)]

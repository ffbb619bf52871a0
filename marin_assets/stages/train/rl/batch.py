"""The batch of a step: rollouts with their advantages, as arrays of a fixed shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.rollout import Rollout, count_rollouts, unused

NOT_TRAINED, ALONE = "not_trained", "alone_in_its_group"
LEAST_DEVIATION = 1e-4
"""Added to the deviation of a group's rewards, as GRPO's authors do, so that equal ones divide nothing by 0."""


@dataclass(frozen=True, kw_only=True)
class Arrays:
    """A row for each planned rollout; of one that is not used the mask is 0."""

    tokens: Any
    """(rows, positions), padded on the right with 0."""
    mask: Any
    """(rows, positions): 1 where the next token was drawn."""
    drawn_logprobs: Any
    """(rows, positions): log-probability of the next token when it was drawn, in nats."""
    advantages: Any
    """(rows,)."""


def choose_used(config: TrainRlConfig, rollouts: Sequence[Rollout]) -> list[Rollout]:
    """The rollouts, with those that are not trained on marked. Raises TrainError if none would be left."""
    marked = [
        unused(rollout, NOT_TRAINED) if rollout.used and not config.lessons[rollout.lesson].is_trained else rollout
        for rollout in rollouts
    ]
    if config.objective.kind != "reinforce":
        sizes = _sizes(marked)
        marked = [
            unused(rollout, ALONE) if rollout.used and sizes[rollout.group] < 2 else rollout for rollout in marked
        ]
    if not any(rollout.used for rollout in marked) and any(r.reason != NOT_TRAINED for r in marked):
        counts = count_rollouts(marked)["rollouts_unused"]
        note = next((rollout.note for rollout in marked if rollout.note), "")
        raise TrainError(
            f"None of the {len(marked)} rollouts of step {marked[0].step} can be used: {counts}. The first note is "
            f"{note!r}. Correct the environment."
        )
    return marked


def advantages_of(kind: str, rewards: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the advantages of the rewards of each group, by the kind of objective (`objective.py`)."""
    import numpy as np

    groups = [np.asarray(group, np.float64) for group in rewards]
    if kind == "reinforce":
        mean = np.concatenate(groups).mean() if groups else 0.0
        return [(group - mean).tolist() for group in groups]
    if kind == "rloo":
        return [(group - (group.sum() - group) / (len(group) - 1)).tolist() for group in groups]
    centred = [group - group.mean() for group in groups]
    if kind == "dr_grpo":
        return [group.tolist() for group in centred]
    return [(group / (group.std() + LEAST_DEVIATION)).tolist() for group in centred]


def arrays_of(config: TrainRlConfig, rollouts: Sequence[Rollout], positions: int) -> Arrays:
    """The arrays of a step's rollouts. `positions`: tokens of a row."""
    import numpy as np

    rows = config.groups * config.group_size
    tokens = np.zeros((rows, positions), np.int32)
    mask, drawn = (np.zeros((rows, positions), np.float32) for _ in range(2))
    advantages = np.zeros(rows, np.float32)
    for rollout, advantage in with_advantages(config, rollouts):
        row = rollout.group * config.group_size + rollout.member
        first, end = len(rollout.prompt_ids), len(rollout.prompt_ids) + len(rollout.ids)
        tokens[row, :end] = rollout.prompt_ids + rollout.ids
        mask[row, first - 1 : end - 1] = rollout.mask
        drawn[row, first - 1 : end - 1] = rollout.logprobs
        advantages[row] = advantage
    return Arrays(tokens=tokens, mask=mask, drawn_logprobs=drawn, advantages=advantages)


def with_advantages(config: TrainRlConfig, rollouts: Sequence[Rollout]) -> list[tuple[Rollout, float]]:
    """The rollouts that are used, each with its advantage."""
    groups: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        if rollout.used:
            groups.setdefault(rollout.group, []).append(rollout)
    rewards = [[float(rollout.reward or 0.0) for rollout in group] for group in groups.values()]
    advantages = advantages_of(config.objective.kind, rewards)
    return [
        pair
        for group, of_group in zip(groups.values(), advantages, strict=True)
        for pair in zip(group, of_group, strict=True)
    ]


def groups_without_variance(rollouts: Sequence[Rollout]) -> int:
    """Number of groups whose rewards are all equal: nothing is learnt from them."""
    rewards: dict[int, set[float | None]] = {}
    for rollout in rollouts:
        if rollout.used:
            rewards.setdefault(rollout.group, set()).add(rollout.reward)
    return sum(len(values) == 1 for values in rewards.values())


def _sizes(rollouts: Sequence[Rollout]) -> dict[int, int]:
    sizes = dict.fromkeys((rollout.group for rollout in rollouts), 0)
    for rollout in rollouts:
        sizes[rollout.group] += rollout.used
    return sizes

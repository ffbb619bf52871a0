"""The batch of a step: which rollouts are trained on, with their advantages, as arrays of a fixed shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.rollout import Rollout, count_rollouts, unused

NOT_TRAINED, ALONE, EQUAL = "not_trained", "alone_in_its_group", "equal_rewards"
BATCH_FULL, TOO_OLD = "batch_was_full", "too_old"
LEAST_DEVIATION = 1e-4
"""Added to the deviation of a group's rewards, as GRPO's authors do, so that equal ones divide nothing by 0."""


@dataclass(frozen=True, kw_only=True)
class Arrays:
    """A row for each rollout that is used; of the rows that are left the mask is 0."""

    tokens: Any
    """(rows, positions), padded on the right with 0."""
    mask: Any
    """(rows, positions): 1 where the next token was drawn."""
    drawn_logprobs: Any
    """(rows, positions): log-probability of the next token when it was drawn, in nats."""
    advantages: Any
    """(rows,)."""


def choose_used(config: TrainRlConfig, rollouts: Sequence[Rollout]) -> list[Rollout]:
    """The rollouts of a step, with those that are not trained on marked. Raises TrainError if none would be left."""
    marked = mark_unused(config, rollouts)
    if config.most_extra_groups is not None:
        first = set(used_groups(marked)[: config.groups])
        marked = [
            unused(rollout, BATCH_FULL) if rollout.used and rollout.group_id not in first else rollout
            for rollout in marked
        ]
    require_used(marked)
    return marked


def mark_unused(config: TrainRlConfig, rollouts: Sequence[Rollout]) -> list[Rollout]:
    """The rollouts of some groups, with those marked that no batch trains on."""
    marked = [
        unused(rollout, NOT_TRAINED) if rollout.used and not config.lessons[rollout.lesson].is_trained else rollout
        for rollout in rollouts
    ]
    if config.objective.kind == "reinforce":
        return marked
    sizes = Counter(rollout.group_id for rollout in marked if rollout.used)
    marked = [unused(rollout, ALONE) if rollout.used and sizes[rollout.group_id] < 2 else rollout for rollout in marked]
    if config.most_extra_groups is None:
        return marked
    equal = _equal_groups(marked)
    return [unused(rollout, EQUAL) if rollout.used and rollout.group_id in equal else rollout for rollout in marked]


def used_groups(rollouts: Iterable[Rollout]) -> list[str]:
    """The ids of the groups of which something is used, in their order."""
    return list(dict.fromkeys(rollout.group_id for rollout in rollouts if rollout.used))


def require_used(rollouts: Sequence[Rollout]) -> None:
    """Raise TrainError if no rollout of a step can be used, and not by choice."""
    reasons = {rollout.reason for rollout in rollouts}
    if any(rollout.used for rollout in rollouts) or EQUAL in reasons or reasons <= {NOT_TRAINED, TOO_OLD}:
        return
    counts = count_rollouts(rollouts)["rollouts_unused"]
    note = next((rollout.note for rollout in rollouts if rollout.note), "")
    raise TrainError(
        f"None of the {len(rollouts)} rollouts of step {rollouts[0].step} can be used: {counts}. The first note is "
        f"{note!r}. Correct the environment."
    )


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
    """The arrays of a step's rollouts. `positions`: tokens of a row. Raises TrainError for those of another shape."""
    import numpy as np

    rows = config.groups * config.group_size
    used = [rollout for rollout in rollouts if rollout.used]
    longest = max((len(rollout.prompt_ids) + len(rollout.ids) for rollout in used), default=0)
    if len(used) > rows or longest > positions:
        raise TrainError(
            f"The batch of a step has {len(used)} rollouts of up to {longest} tokens, expected at most {rows} of up to "
            f"{positions}: groups * group_size, and max_length or the model's window. Use those of the training that "
            "sampled them."
        )
    tokens = np.zeros((rows, positions), np.int32)
    mask, drawn = (np.zeros((rows, positions), np.float32) for _ in range(2))
    advantages = np.zeros(rows, np.float32)
    for row, (rollout, advantage) in enumerate(with_advantages(config, rollouts)):
        first, end = len(rollout.prompt_ids), len(rollout.prompt_ids) + len(rollout.ids)
        tokens[row, :end] = rollout.prompt_ids + rollout.ids
        mask[row, first - 1 : end - 1] = rollout.mask
        drawn[row, first - 1 : end - 1] = rollout.logprobs
        advantages[row] = advantage
    return Arrays(tokens=tokens, mask=mask, drawn_logprobs=drawn, advantages=advantages)


def with_advantages(config: TrainRlConfig, rollouts: Sequence[Rollout]) -> list[tuple[Rollout, float]]:
    """The rollouts that are used, each with its advantage."""
    groups: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        if rollout.used:
            groups.setdefault(rollout.group_id, []).append(rollout)
    rewards = [[float(rollout.reward or 0.0) for rollout in group] for group in groups.values()]
    advantages = advantages_of(config.objective.kind, rewards)
    return [
        pair
        for group, of_group in zip(groups.values(), advantages, strict=True)
        for pair in zip(group, of_group, strict=True)
    ]


def groups_without_variance(rollouts: Sequence[Rollout]) -> int:
    """Number of groups whose rewards are all equal: nothing is learnt from them."""
    return len(_equal_groups(rollouts))


def _equal_groups(rollouts: Sequence[Rollout]) -> set[str]:
    rewards: dict[str, set[float | None]] = {}
    for rollout in rollouts:
        if rollout.used or rollout.reason == EQUAL:
            rewards.setdefault(rollout.group_id, set()).add(rollout.reward)
    return {group for group, values in rewards.items() if len(values) == 1}

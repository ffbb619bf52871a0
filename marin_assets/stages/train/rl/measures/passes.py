"""Measures of a step's rollouts, as metrics for people: how many answers and groups have a reward, and their staleness.

pass@1 is the share of answers whose reward is above 0, and pass@k that of groups of k answers of which at least one has
such a reward (Chen et al. 2021). Where rewards are below 0 or have parts, look at the mean reward instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from marin_assets.stages.train.rl.rollout import Rollout

PASS_1, PASS_K = "rl/pass_at_1", "rl/pass_at_k"
STALENESS_MAX = "rl/staleness_max"


def measures_of(step: int, rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Shares between 0 and 1, of the rollouts that are used, and by lesson of all that have a reward; and the largest
    number of updates by which the weights of a rollout that is used are older than `step`."""
    used = [rollout for rollout in rollouts if rollout.used]
    by_lesson: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        by_lesson.setdefault(rollout.lesson, []).append(rollout)
    measures = _passes("", used)
    for name, of in sorted(by_lesson.items()):
        measures |= _passes(f"/{name}", of)
    if used:
        measures[STALENESS_MAX] = float(max(step - rollout.weights_step for rollout in used))
    return measures


def _passes(ending: str, rollouts: Sequence[Rollout]) -> dict[str, float]:
    groups: dict[str, list[bool]] = {}
    for rollout in rollouts:
        if rollout.reward is not None:
            groups.setdefault(rollout.id.rpartition("-")[0], []).append(rollout.reward > 0)
    passed = [is_passed for group in groups.values() for is_passed in group]
    if not passed:
        return {}
    return {
        f"{PASS_1}{ending}": sum(passed) / len(passed),
        f"{PASS_K}{ending}": sum(map(any, groups.values())) / len(groups),
    }

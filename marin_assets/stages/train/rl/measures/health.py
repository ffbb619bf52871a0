"""Signs of a collapse of reinforcement learning: numbers of its metrics, their asset checks, and sentences for people.

In:  rows of metrics.   Out: numbers of the result, each with a check that warns; sentences.
All are means over a twentieth of the steps, at least five of them, since one batch is noisy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from marin_assets.step.expectation import expect

REWARD, ENTROPY, K3 = "rl/reward", "train/entropy", "train/k3_of_sampler"
PART, LEAST = 0.05, 5
MOST_FALL, LEAST_ENTROPY, MOST_K3 = 0.5, 0.05, 0.1

REWARD_CHECKS = (
    expect(
        "reward_fall",
        at_most=MOST_FALL,
        warn=True,
        description="The share of its best mean that the reward has lost at the end.",
    ),
    expect(
        "entropy_end",
        at_least=LEAST_ENTROPY,
        warn=True,
        description="Entropy of the choice of a token, in nats: near 0 all answers are the same.",
    ),
    expect(
        "k3_end",
        at_most=MOST_K3,
        warn=True,
        description="Divergence of the weights that train from those that sampled, in nats a token.",
    ),
)
"""Checks of a training on rewards, beside those of every training."""

Row = Mapping[str, Any]


def health_of(rows: Sequence[Row]) -> dict[str, float]:
    """Return the numbers of REWARD_CHECKS that the rows have. reward_fall is 0 where the best mean is not above 0."""
    numbers: dict[str, float] = {}
    if rewards := _means(rows, REWARD):
        best = max(mean for _, mean in rewards)
        numbers["reward_fall"] = round(1 - rewards[-1][1] / best, 4) if best > 0 else 0.0
    for name, metric in (("entropy_end", ENTROPY), ("k3_end", K3)):
        if means := _means(rows, metric):
            numbers[name] = round(means[-1][1], 6)
    return numbers


def signs_of(rows: Sequence[Row]) -> list[str]:
    """A sentence for each sign of a collapse; none of a training of fewer than twice LEAST steps."""
    if len(rows) < 2 * LEAST:
        return []
    numbers, signs = health_of(rows), list[str]()
    if numbers.get("reward_fall", 0.0) > MOST_FALL:
        means = _means(rows, REWARD)
        step, best = max(means, key=lambda mean: mean[1])
        signs.append(
            f"The mean reward has fallen to {means[-1][1]:.3g}, by more than half of its best, {best:.3g} at step "
            f"{step:,}. Begin again from an export before the fall, with a lower learning rate, or with less staleness."
        )
    if numbers.get("entropy_end", LEAST_ENTROPY) < LEAST_ENTROPY:
        since = _since(rows, ENTROPY, is_bad=lambda mean: mean < LEAST_ENTROPY)
        signs.append(
            f"The entropy is {numbers['entropy_end']:.2g} nats a token, and below {LEAST_ENTROPY:g} since step "
            f"{since:,}: the model gives nearly always the same answer, and learns no more from it."
        )
    if numbers.get("k3_end", 0.0) > MOST_K3:
        since = _since(rows, K3, is_bad=lambda mean: mean > MOST_K3)
        signs.append(
            f"The divergence from the weights that sampled (k3) is {numbers['k3_end']:.2g} nats a token, and above "
            f"{MOST_K3:g} since step {since:,}: the weights move too far between sampling and training. Lower the "
            "learning rate, or the staleness."
        )
    return signs


def _since(rows: Sequence[Row], metric: str, *, is_bad: Callable[[float], bool]) -> int:
    """The first step from which on all means are bad."""
    since = 0
    for step, mean in reversed(_means(rows, metric)):
        if not is_bad(mean):
            break
        since = step
    return since


def _means(rows: Sequence[Row], metric: str) -> list[tuple[int, float]]:
    """Last step and mean of each window of the metric, a step apart."""
    points = [(row["step"], row[metric]) for row in rows if metric in row]
    size = min(max(LEAST, round(len(points) * PART)), len(points))
    sums = list(accumulate((value for _, value in points), initial=0.0))
    return [(points[end - 1][0], (sums[end] - sums[end - size]) / size) for end in range(max(size, 1), len(points) + 1)]

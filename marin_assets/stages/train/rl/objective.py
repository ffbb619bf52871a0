"""Objectives by name: how rewards become advantages, how tokens are weighed, and what is done about stale data.

    kind        advantage of a rollout                        tokens
    rloo        less the mean of the others of its group      all alike
    grpo        less the group's mean, by its deviation       each rollout alike, by its length
    dr_grpo     less the group's mean                         all alike, by the most that a rollout could have
    dapo        as grpo                                       all alike
    reinforce   less the mean of the whole batch              all alike

RLOO: Ahmadian et al. 2024. GRPO: Shao et al. 2024. Dr. GRPO: Liu et al. 2025. DAPO: Yu et al. 2025. REINFORCE with a
baseline: Williams 1992.
"""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.specs.bounds import require_above_0, require_at_least
from marin_assets.step.values import versioned
from marin_resources.types.near_names import expected_one_of

KINDS = ("rloo", "grpo", "dr_grpo", "dapo", "reinforce")
CORRECTIONS = ("truncate", "mask", "clip", "sequence", "none")
KL_KINDS = ("k1", "k2", "k3")


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The quantity that a step of the training makes greater.

    The ratio of a token is its likelihood by the model that is trained, divided by that by the weights that sampled it.
    """

    kind: str = versioned("rloo")
    correction: str = versioned("truncate")
    """For samples of earlier weights. "truncate": weigh each token by its ratio, at most `most_ratio` (truncated
    importance sampling). "mask": leave out tokens whose likelihood moved by more than `most_moved`. "clip": PPO's clip
    (Schulman et al. 2017). "sequence": that of the geometric mean of a rollout's ratios (GSPO, Zheng et al. 2025).
    "none": as if they were the model's own."""
    most_ratio: float = versioned(2.0)
    most_moved: float = versioned(0.2)
    clip_low: float = versioned(0.2)
    """The ratio is clipped to 1 less this, up to 1 and `clip_high`."""
    clip_high: float = versioned(0.2)
    kl: str = versioned("k3")
    """Estimator of the divergence from the model at the start, by Schulman's names: k1 = log p - log q, k2 = k1² / 2,
    k3 = q/p - 1 + k1, with p of the model that is trained and q of the other."""
    kl_weight: float = versioned(0.0)
    """Weight of that divergence in the loss, a token; 0 leaves it out, and holds no second model."""


def check_objective(objective: Objective) -> None:
    """Raise TrainError for a name or a number without a meaning."""
    for name, names in (("kind", KINDS), ("correction", CORRECTIONS), ("kl", KL_KINDS)):
        if (value := getattr(objective, name)) not in names:
            raise TrainError(f"The objective has {name}={value!r}, {expected_one_of(value, names)}")
    for name in ("most_ratio", "most_moved", "clip_low", "clip_high"):
        require_above_0(name, getattr(objective, name))
    if objective.clip_low >= 1:
        raise TrainError(f"clip_low is {objective.clip_low!r}, expected a number below 1.")
    require_at_least("kl_weight", objective.kl_weight, 0)

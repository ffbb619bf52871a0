"""A mixture of token caches: which are trained on, in which shares at which step, and in which order.

    Mixture(
        components={"web": output_path_of(web), "code": output_path_of(code), "held_out": output_path_of(held_out)},
        weights=versioned([(0, {"web": 0.9, "code": 0.1}), (1024, {"web": 0.4, "code": 0.6})]),
    )

Everything that decides the order of the data is versioned: names, weights, block, shuffle, subsets, budgets. Levanter's
order of the data depends on the order of the names, so members and weights are sorted by name: the order in which an
author writes them changes neither the version nor the data.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from marin_assets.step.values import ensure_versioned, unwrap_versioned_value, versioned

Weights = Mapping[str, float]
StopStrategies = ("restart", "first_exhausted", "all_exhausted")
PermutationTypes = ("feistel", "linear")
MAX_BLOCK_SIZE = 2**16 - 1
"""Levanter packs a place within a block into 16 bits."""


@dataclass(frozen=True, kw_only=True)
class Subset:
    """A part of the train side of a member, in whole sequences. Exactly one of `tokens` and `sequences` is given."""

    tokens: int | None = None
    """The most tokens: as many whole sequences as they hold."""
    sequences: int | None = None
    seed: int | None = None
    """None takes the first sequences, in the order of the cache. A seed draws them without replacement, whatever the
    seed of the training; a smaller subset is a part of a larger one with the same seed."""


@dataclass(frozen=True, kw_only=True)
class BlockShuffle:
    """Shuffle blocks of neighbouring sequences, and the sequences of a window of such blocks: fewer reads of a cache in
    a bucket than a full shuffle. The defaults are Levanter's."""

    io_block_size: int = 256
    """Sequences that are read together."""
    window_blocks: int = 512
    """Blocks whose sequences are shuffled together."""


@dataclass(frozen=True, kw_only=True)
class Mixture:
    components: Mapping[str, str | Mapping[str, str]]
    """Name of a member -> path of a tokenized output, or of a snapshot of one. A member may be several outputs by name:
    they are joined, each in the share of its size. A member without a weight is validated on, and never trained on."""
    weights: Weights | Sequence[tuple[int, Weights]]
    """Name -> share of the sequences, in any unit; or phases, (first step, weights) in order, the first at step 0."""
    subsets: Mapping[str, Subset] | None = versioned(None)
    """Name -> the part of the member that is trained on."""
    block_size: int = versioned(2048)
    """In each block of so many sequences a member has the same number of them. A phase begins with a block."""
    shuffle: bool | BlockShuffle = versioned(True)
    """Whether each member is shuffled, by the seed of the training. False keeps its order up to the block: which place
    in a block is whose is drawn in any case."""
    permutation_type: str = versioned("feistel")
    """Permutation of a full shuffle. "linear" is Levanter's older and weaker one."""
    stop_strategy: str = versioned("restart")
    """Continuation after the last sequence of a member: "restart" begins it again. With "first_exhausted" the mixture
    ends with the first member that ends, with "all_exhausted" with the last; the training must end before."""
    experiment_budget_tokens: int | None = versioned(None)
    target_budget_tokens: int | None = versioned(None)
    """Both, to simulate the epochs of a training on `target_budget_tokens` with one on `experiment_budget_tokens`: each
    member is cut to the ratio of the two."""

    def __post_init__(self) -> None:
        if isinstance(self.components, Mapping):
            object.__setattr__(self, "components", _sorted_members(self.components))


@dataclass(frozen=True)
class Phase:
    """Weights from a step on."""

    first_step: int
    weights: dict[str, float]
    """Weights of the members that are drawn, by name; they sum to 1."""


def versioned_mixture(mixture: Mixture) -> Mixture:
    """The mixture with every field versioned, whether its author wrote versioned() or not."""
    return replace(mixture, **{name: ensure_versioned(getattr(mixture, name)) for name in _own_fields()})


def plain_mixture(mixture: Mixture) -> Mixture:
    """The mixture without versioned(), with its placeholders for paths."""
    return replace(mixture, **{name: unwrap_versioned_value(getattr(mixture, name)) for name in _own_fields()})


def is_varying(weights: Any) -> bool:
    """Whether weights are in phases."""
    return isinstance(weights, Sequence) and not isinstance(weights, str)


def phases_of(weights: Weights | Sequence[tuple[int, Weights]]) -> list[Phase]:
    """The phases with weights that sum to 1; one phase for weights that do not vary."""
    if isinstance(weights, Mapping):
        return [Phase(0, _normalized(weights))]
    return [Phase(step, _normalized(phase)) for step, phase in weights]


def phase_at(phases: Sequence[Phase], step: int) -> Phase:
    """The phase of a step."""
    return next(phase for phase in reversed(phases) if phase.first_step <= step)


def drawn_members(phases: Sequence[Phase]) -> list[str]:
    """The members that are trained on, in the order of the data."""
    return sorted(set(itertools.chain.from_iterable(phase.weights for phase in phases)))


def sequences_in_a_block(phase: Phase, members: Sequence[str], block_size: int) -> dict[str, int]:
    """The sequences of each of the drawn members in a block, as Levanter counts them: cut down to a whole number, and
    what is left goes to the member with the most."""
    counts = {name: int(phase.weights.get(name, 0.0) * block_size) for name in members}
    counts[max(counts, key=lambda name: counts[name])] += block_size - sum(counts.values())
    return counts


def sequences_before(step: int, batch_size: int) -> int:
    """The sequences that the steps before `step` have taken."""
    return step * batch_size


def expected_draws(mixture: Mixture, steps: int, batch_size: int) -> dict[str, float]:
    """The sequences of each drawn member that a training takes; of a last block that is cut, the expected ones."""
    phases = phases_of(mixture.weights)
    members = drawn_members(phases)
    ends = [*(phase.first_step for phase in phases[1:]), steps]
    draws = dict.fromkeys(members, 0.0)
    for phase, end in zip(phases, ends, strict=True):
        length = sequences_before(end, batch_size) - sequences_before(phase.first_step, batch_size)
        for name, count in sequences_in_a_block(phase, members, mixture.block_size).items():
            draws[name] += count * length / mixture.block_size
    return draws


def _own_fields() -> list[str]:
    return [field.name for field in fields(Mixture) if field.name != "components"]


def _sorted_members(components: Mapping[str, Any]) -> dict[str, Any]:
    """Sorted by name, at both levels."""
    return {
        name: _sorted_members(member) if isinstance(member, Mapping) else member
        for name, member in sorted(components.items(), key=lambda item: str(item[0]))
    }


def _normalized(weights: Weights) -> dict[str, float]:
    positive = {name: float(weight) for name, weight in sorted(weights.items()) if weight > 0}
    total = sum(positive.values())
    return {name: weight / total for name, weight in positive.items()}


def mixture_metrics(mixture: Mixture | None) -> Callable[[int], Mapping[str, float]]:
    """Return a function from a step to its metrics: its phase, and the weight of each member, which sum to 1. Levanter
    does not recognize its own mixture, and logs none."""
    if mixture is None:
        return lambda step: {}
    phases = phases_of(mixture.weights)
    members = drawn_members(phases)
    rows = {
        phase.first_step: {
            **{f"mixture/weight/{name}": phase.weights.get(name, 0.0) for name in members},
            "mixture/phase": float(number),
        }
        for number, phase in enumerate(phases)
    }
    return lambda step: rows[phase_at(phases, step).first_step]

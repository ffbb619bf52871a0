"""Check the recipe of a mixture, without reading its caches: what Levanter warns about, or passes over.

In:  a Mixture, and the shape of the training.   Out: an InputError, one sentence with what to do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.train.errors import InputError
from marin_assets.stages.train.specs.mixture import (
    MAX_BLOCK_SIZE,
    BlockShuffle,
    Mixture,
    PermutationTypes,
    Phase,
    StopStrategies,
    Subset,
    drawn_members,
    is_varying,
    phases_of,
    sequences_before,
    sequences_in_a_block,
)
from marin_assets.stages.train.specs.optimizer import LoopSpec
from marin_resources.types.near_names import expected_one_of


def check_mixture(mixture: Mixture, *, steps: int, batch_size: int, sequence_length: int | None) -> None:
    """Raise InputError for a mixture that could not be drawn as it is written, in a training of this shape.

    `sequence_length` is None if it is in a file that does not exist yet.
    """
    check_recipe(mixture)
    phases = phases_of(mixture.weights)
    _check_borders(phases, mixture.block_size, steps, batch_size)
    for name, part in (mixture.subsets or {}).items():
        if part.tokens is not None and sequence_length is not None and part.tokens < sequence_length:
            raise InputError(
                f"The subset of {name!r} has tokens={part.tokens}, expected at least one sequence of {sequence_length}."
            )


def check_mixture_in(mixture: Mixture, *, loop: LoopSpec | None, optimizer_goes_on: bool) -> None:
    """Raise InputError for what does not go with a mixture in one training: its steps are counted otherwise."""
    if loop is not None and loop.batch_schedule is not None:
        raise InputError(
            f"The config has a mixture and batch_schedule={loop.batch_schedule!r}, expected one of them: phases and "
            "blocks of a mixture are counted with one train_batch_size. Leave the schedule out."
        )
    if optimizer_goes_on and len(phases_of(mixture.weights)) > 1:
        raise InputError(
            "The mixture has phases, and the training continues with the optimizer's state of another one, from whose "
            "first step they would be counted. Give the mixture one set of weights."
        )


def check_recipe(mixture: Mixture) -> None:
    """Raise InputError for what is wrong with a mixture in any training."""
    if not isinstance(mixture.components, Mapping) or not mixture.components:
        raise InputError(
            f"The mixture's components are {mixture.components!r}, expected at least one name with the path of a "
            "tokenized output."
        )
    for name, member in mixture.components.items():
        if isinstance(member, Mapping) and not member:
            raise InputError(f"Member {name!r} of the mixture is empty, expected at least one tokenized output.")
    _check_phases(mixture.weights, list(mixture.components))
    _check_choices(mixture)
    phases = phases_of(mixture.weights)
    _check_every_member_is_drawn(phases, mixture.block_size)
    for name, part in (mixture.subsets or {}).items():
        _check_subset(name, part, drawn_members(phases))
    _check_budgets(mixture)


def check_weights(weights: Any, members: Sequence[str], where: str = "The mixture's weights") -> None:
    """Raise InputError unless these are weights of members, numbers of 0 or more, one of them above 0."""
    if not isinstance(weights, Mapping):
        raise InputError(f"{where} are {weights!r}, expected a dict of name to number, or phases [(0, {{…}}), …].")
    for name, weight in weights.items():
        if name not in members:
            raise InputError(f"{where} name {name!r}, {expected_one_of(name, sorted(members), 'members')}")
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight) or weight < 0:
            raise InputError(f"{where} give {name!r} {weight!r}, expected a finite number of 0 or more.")
    if not any(weights.values()):
        raise InputError(
            f"{where} are {dict(weights)!r}, expected at least one above 0: a member without one is validated on, and "
            "never trained on."
        )


def _check_phases(weights: Any, members: Sequence[str]) -> None:
    if not is_varying(weights):
        check_weights(weights, members)
        return
    if not weights:
        raise InputError("The mixture's weights are an empty list, expected a dict, or phases [(0, {…}), …].")
    for phase in weights:
        if not isinstance(phase, Sequence) or isinstance(phase, str) or len(phase) != 2:
            raise InputError(f"The mixture has the phase {phase!r}, expected (first step, weights).")
        step, of_phase = phase
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise InputError(f"The mixture has a phase from step {step!r}, expected a whole number of 0 or more.")
        check_weights(of_phase, members, f"The weights from step {step}")
    starts = [step for step, _ in weights]
    if starts[0] != 0:
        raise InputError(f"The mixture's first phase begins at step {starts[0]}, expected 0.")
    for before, after in itertools.pairwise(starts):
        if after <= before:
            raise InputError(f"The mixture's phases begin at the steps {starts}, expected each after the one before.")


def _check_choices(mixture: Mixture) -> None:
    size = mixture.block_size
    if not _is_count(size) or size > MAX_BLOCK_SIZE:
        raise InputError(f"The mixture's block_size is {size!r}, expected 1 to {MAX_BLOCK_SIZE} sequences.")
    for field, value, choices in (
        ("stop_strategy", mixture.stop_strategy, StopStrategies),
        ("permutation_type", mixture.permutation_type, PermutationTypes),
    ):
        if value not in choices:
            raise InputError(f"The mixture's {field} is {value!r}, {expected_one_of(value, choices)}")
    shuffle = mixture.shuffle
    if isinstance(shuffle, BlockShuffle):
        if not _is_count(shuffle.io_block_size) or not _is_count(shuffle.window_blocks):
            raise InputError(f"The mixture's shuffle is {shuffle!r}, expected whole numbers of 1 or more.")
    elif not isinstance(shuffle, bool):
        raise InputError(
            f"The mixture's shuffle is {shuffle!r}, expected True, False or BlockShuffle(…). A shuffle by eras is not "
            "in this Levanter."
        )


def _check_every_member_is_drawn(phases: Sequence[Phase], block_size: int) -> None:
    members = drawn_members(phases)
    for phase in phases:
        counts = sequences_in_a_block(phase, members, block_size)
        for name, weight in phase.weights.items():
            if counts[name]:
                continue
            needed = next(size for size in itertools.count(math.floor(1 / weight)) if int(weight * size) >= 1)
            remedy = f"Set block_size to at least {needed}" if needed <= MAX_BLOCK_SIZE else "Give it a larger weight"
            raise InputError(
                f"Member {name!r} has a share of {weight:.3g} from step {phase.first_step} on, which is less than one "
                f"of the {block_size} sequences of a block, so it would never be drawn. {remedy}, or give it no weight."
            )


def _check_borders(phases: Sequence[Phase], block_size: int, steps: int, batch_size: int) -> None:
    """Levanter asserts that a phase begins with a block; a phase after the last step would never be seen."""
    starts = [phase.first_step for phase in phases]
    for start in starts:
        if start >= steps:
            raise InputError(
                f"The mixture has a phase from step {start}, after the last of the {steps} steps. Leave it out, or "
                "train for longer."
            )
        before = sequences_before(start, batch_size)
        if before % block_size:
            apart = block_size // math.gcd(block_size, batch_size)
            borders = math.gcd(*(sequences_before(first_step, batch_size) for first_step in starts))
            fitting = next(size for size in range(min(block_size, borders), 0, -1) if borders % size == 0)
            raise InputError(
                f"The mixture has a phase from step {start}, after {before} sequences, which is within a block of "
                f"{block_size}. With {batch_size} sequences a step, begin phases at multiples of {apart} steps, or "
                f"set block_size to {fitting}."
            )


def _check_subset(name: str, part: Any, drawn: Sequence[str]) -> None:
    if name not in drawn:
        raise InputError(
            f"The mixture has a subset of {name!r}, {expected_one_of(name, drawn, 'members with a weight')}"
        )
    if not isinstance(part, Subset) or (part.tokens is None) == (part.sequences is None):
        raise InputError(f"The subset of {name!r} is {part!r}, expected a Subset with either tokens or sequences.")
    if not _is_count(part.tokens if part.sequences is None else part.sequences):
        raise InputError(f"The subset of {name!r} is {part!r}, expected a whole number of 1 or more.")
    if part.seed is not None and (not isinstance(part.seed, int) or part.seed < 0):
        raise InputError(f"The subset of {name!r} has the seed {part.seed!r}, expected None or a number of 0 or more.")


def _check_budgets(mixture: Mixture) -> None:
    experiment, target = mixture.experiment_budget_tokens, mixture.target_budget_tokens
    if experiment is None and target is None:
        return
    if experiment is None or target is None or not _is_count(experiment) or not _is_count(target):
        raise InputError(
            f"The mixture has experiment_budget_tokens={experiment!r} and target_budget_tokens={target!r}, expected "
            "two numbers of tokens of 1 or more, or neither."
        )
    if experiment > target:
        raise InputError(
            f"The mixture has experiment_budget_tokens={experiment} above target_budget_tokens={target}, expected at "
            "most that: epochs of a longer training are simulated by a shorter one."
        )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1

"""Check the schedule of the learning rate against the steps of its training: Levanter cuts what is past the end."""

from __future__ import annotations

import itertools
from typing import Any

from marin_assets.stages.train.errors import TrainError


def check_schedule(optimizer: Any, steps: int) -> None:
    """Raise TrainError for a warm-up, a decay or cycles that do not fit in the steps. `optimizer`: either spec."""
    lengths = _cycle_lengths(getattr(optimizer, "cycles", None), getattr(optimizer, "cycle_length", None), steps)
    decay = getattr(optimizer, "decay", None)
    for number, length in enumerate(lengths):
        name = "rewarmup" if number else "warmup"
        rise = getattr(optimizer, name, None) or 0.0
        where = f"the {steps} steps" if len(lengths) == 1 else f"cycle {number + 1}, which has {length} steps"
        if _in_steps(rise, length) > length:
            raise TrainError(f"{name} is {rise!r} steps, past the end of {where}. Lower it, or train for longer.")
        if decay is not None and decay != 1.0 and _in_steps(rise, length) + _in_steps(decay, length) > length:
            raise TrainError(
                f"{name} is {rise!r} and decay {decay!r}, together more than {where}, so the decay would be cut. Lower "
                "one of them, or leave decay None: it takes what the warm-up leaves."
            )


def _cycle_lengths(cycles: Any, cycle_length: Any, steps: int) -> list[int]:
    """The steps of each cycle, as Levanter divides them."""
    if isinstance(cycles, int):
        if not 1 <= cycles <= steps:
            raise TrainError(f"cycles is {cycles}, expected a number from 1 to that of the steps, {steps}.")
        ends = [int(steps / cycles * (number + 1)) for number in range(cycles - 1)]
    elif cycles is not None:
        ends = list(cycles)
        if not ends or ends != sorted(set(ends)) or ends[0] < 1 or ends[-1] > steps:
            raise TrainError(f"cycles is {cycles!r}, expected steps of 1 to {steps}, each after the one before.")
    elif isinstance(cycle_length, int | float):
        length = _in_steps(cycle_length, steps)
        if not 1 <= length <= steps:
            raise TrainError(
                f"cycle_length is {cycle_length!r}, expected a share of the {steps} steps that is a step at least, or "
                f"a number of steps up to {steps}."
            )
        ends = [number * length for number in range(1, steps // length)]
    elif cycle_length is not None:
        if not cycle_length or min(cycle_length) < 1 or sum(cycle_length) > steps:
            raise TrainError(
                f"cycle_length is {cycle_length!r}, expected steps of 1 or more each, that add up to at most {steps}."
            )
        ends = list(itertools.accumulate(cycle_length))
    else:
        ends = []
    return [end - start for start, end in itertools.pairwise([0, *(end for end in ends if end < steps), steps])]


def _in_steps(share_or_steps: float, steps: int) -> int:
    """A number up to 1.0 is a share, as Levanter reads it."""
    return int(share_or_steps * steps) if share_or_steps <= 1 else int(share_or_steps)

"""Check all of a training's config that needs no file: what a run would refuse, pass over or train otherwise.

In:  a TrainLmConfig without versioned(), whose values have their types (`types.py`). Paths may be placeholders.
Out: a TrainError or InputError, one sentence with the field.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from marin_assets.stages.train.errors import InputError, TrainError
from marin_assets.stages.train.specs.bounds import require_above_0, require_at_least, require_seed
from marin_assets.stages.train.specs.levanter_fields import check_paths
from marin_assets.stages.train.specs.lora import check_factors
from marin_assets.stages.train.specs.mixture import Mixture
from marin_assets.stages.train.specs.mixture_checks import check_mixture, check_mixture_in
from marin_assets.stages.train.specs.model import (
    HuggingFaceModel,
    ModelSpec,
    check_dimensions,
    check_heads,
    check_model,
    length_before_a_run,
    shape_of,
)
from marin_assets.stages.train.specs.optimizer import AVERAGE, check_loop, check_optimizer, is_averaged
from marin_assets.stages.train.specs.precision import read_precision
from marin_assets.stages.train.specs.start import FromCheckpoint, FromHuggingFace, continues_optimizer
from marin_assets.stages.train.specs.trackers import check_trackers
from marin_resources.types.near_names import expected_one_of

COUNTS = ("train_batch_size", "steps_per_eval", "steps_per_checkpoint")
COUNTS_OR_NONE = ("max_eval_batches", "keep_last_checkpoints", "keep_checkpoints_every")
MIN_HEAD_DIM = 32
"""vLLM's attention on CPUs supports no smaller dimension (vLLM 0.32), so it could not serve a smaller model."""


def check_settings(config: Any) -> None:
    """Raise TrainError or InputError for the first setting that a run could not do as it is written."""
    _check_numbers(config)
    _check_model(config)
    check_optimizer(config.optimizer)
    if config.loop is not None:
        check_loop(config.loop)
    _check_schedule(config.optimizer, config.num_train_steps)
    _check_batches(config)
    _check_length(config)
    _check_start(config)
    if config.lora is not None:
        check_factors(config.lora)
    if config.chat is not None and config.chat.chats_per_sequence < 1:
        raise InputError(
            f"chats_per_sequence is {config.chat.chats_per_sequence}, expected at least 1, which packs none."
        )
    check_paths(config.levanter or {})
    check_trackers(config.trackers)
    _check_data(config)


def _check_numbers(config: Any) -> None:
    if config.num_train_steps < 2:
        raise TrainError(
            f"num_train_steps is {config.num_train_steps}, expected at least 2, or Levanter exports no model."
        )
    for name in COUNTS:
        require_at_least(name, getattr(config, name), 1)
    for name in COUNTS_OR_NONE:
        require_at_least(name, getattr(config, name), 1, or_none=True)
    if config.keep_checkpoints_every is not None and config.keep_last_checkpoints is None:
        raise TrainError(
            f"keep_checkpoints_every is {config.keep_checkpoints_every} and keep_last_checkpoints None, so all are "
            "kept. Pass keep_last_checkpoints=1 or more."
        )
    if config.steps_per_hf_export is not None and config.steps_per_hf_export < 1:
        raise TrainError(
            f"steps_per_hf_export is {config.steps_per_hf_export}, expected a number of steps of at least 1, or None."
        )
    require_above_0("checkpoint_interval_s", config.checkpoint_interval_s)
    require_seed("seed", config.seed)
    read_precision(config.precision)


def _check_model(config: Any) -> None:
    check_dimensions(config.model)
    if isinstance(config.model, HuggingFaceModel):
        return
    if isinstance(config.model, ModelSpec):
        check_model(config.model)
    check_heads(shape_of(config.model), smallest_head=1 if isinstance(config.model, ModelSpec) else MIN_HEAD_DIM)


def _check_batches(config: Any) -> None:
    """Stages that begin after the end are never reached, and a batch is divided without a rest."""
    stages = (config.loop.batch_schedule if config.loop else None) or ((0, config.train_batch_size),)
    at_a_time = config.loop.per_device_parallelism if config.loop else None
    for start, size in stages:
        if start >= config.num_train_steps:
            raise TrainError(
                f"batch_schedule has a stage from step {start}, after the last of the {config.num_train_steps} steps. "
                "Leave it out, or train for longer."
            )
        if at_a_time is not None and size % at_a_time:
            raise TrainError(
                f"per_device_parallelism is {at_a_time}, and a batch has {size} sequences, expected a divisor of it."
            )


def _check_length(config: Any) -> None:
    length = config.loop.train_seq_len if config.loop else None
    longest = config.model.max_seq_len
    if length is not None and longest is not None and length > longest:
        raise TrainError(
            f"train_seq_len is {length}, and the model takes at most {longest} tokens. Lower it, or raise the model's "
            "max_seq_len."
        )


def _check_start(config: Any) -> None:
    if isinstance(config.start, FromCheckpoint):
        require_at_least("step of the start", config.start.step, 0, or_none=True)
    if config.lora is not None and not isinstance(config.start, FromHuggingFace):
        raise TrainError(
            f"lora adapts the model of a Hugging Face folder, and start is {config.start!r}. Pass "
            "start=FromHuggingFace(path=…) with the model."
        )


def _check_data(config: Any) -> None:
    if config.mixture is not None and not isinstance(config.mixture, Mixture):
        raise TrainError(f"mixture is {config.mixture!r}, expected a Mixture, such as lm_mixture_data_config returns.")
    if config.mixture is None:
        names = list(config.components)
        if config.train_weights is not None:
            _check_weights(names, config.train_weights)
    else:
        names = list(_names_in(config.mixture))
        _check_mixture(config)
    taken = [name for name in names if name.partition("/")[0] == AVERAGE]
    if taken and is_averaged(config.loop):
        raise InputError(
            f"The component {taken[0]!r} is named as the average of the weights is, whose metrics begin with "
            f"'eval/{AVERAGE}/'. Rename it, or leave ema_beta None."
        )


def _check_weights(names: Iterable[str], weights: Mapping[str, float]) -> None:
    """A component may be a snapshot, whose partitions "name/key" have the weights."""
    names = list(names)
    for name in weights:
        if not any(name == component or name.startswith(f"{component}/") for component in names):
            raise InputError(f"train_weights names {name!r}, {expected_one_of(name, sorted(names), 'components')}")
    missing = [
        component
        for component in names
        if not any(name == component or name.startswith(f"{component}/") for name in weights)
    ]
    if missing:
        raise InputError(
            f"train_weights names {sorted(weights)} and components {sorted(names)}, expected the same names."
        )
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights.values()) or not any(weights.values()):
        raise InputError(f"train_weights is {dict(weights)!r}, expected numbers of 0 or more, one of them above 0.")


def _check_mixture(config: Any) -> None:
    if config.components or config.train_weights is not None:
        raise InputError(
            "The config has a mixture and also components or train_weights, expected one of them. The members and "
            "weights of a mixture are in the mixture."
        )
    check_mixture(
        config.mixture,
        steps=config.num_train_steps,
        batch_size=config.train_batch_size,
        sequence_length=length_before_a_run(config),
    )
    check_mixture_in(config.mixture, loop=config.loop, optimizer_goes_on=continues_optimizer(config.start))


def _names_in(mixture: Any) -> Iterator[str]:
    members = mixture.components if isinstance(mixture.components, Mapping) else {}
    for name, member in members.items():
        yield name
        yield from (f"{name}/{key}" for key in member) if isinstance(member, Mapping) else ()


def _check_schedule(optimizer: Any, steps: int) -> None:
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

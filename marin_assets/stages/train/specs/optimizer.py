"""Optimizers by name, with the schedule of the learning rate, and the rest of the training loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.specs.bounds import require_above_0, require_at_least, require_seed, require_share
from marin_assets.step.values import versioned
from marin_resources.types.near_names import expected_one_of

OF_ALL = (
    "beta1",
    "beta2",
    "cooldown",
    "cycle_length",
    "cycles",
    "decay",
    "default_weight_decay_mask",
    "epsilon",
    "haps",
    "learning_rate",
    "lr_schedule",
    "max_grad_norm",
    "min_lr_ratio",
    "rewarmup",
    "warmup",
    "weight_decay",
    "weight_decay_modules",
)
_MATRICES = ("adam_lr", "backend_steps", "coefficient_type", "momentum", "muon_epsilon", "nesterov")
_MUON = (*_MATRICES, "adam_weight_decay", "lr", "use_kimi_scaling")
_NAMO = (*_MATRICES, "adam_weight_decay", "adamnorm_eps", "mu2", "scale_coeff")
OF_KIND: Mapping[str, tuple[str, ...]] = {
    "adam": ("adamc_weight_decay", "clip_update_norm", "nesterov", "skip_bad_steps", "update_rms_clipping"),
    "adamH": ("adam_lr", "nesterov"),
    "adopt": ("schedule_list",),
    "cautious": ("adamc_weight_decay", "gamma"),
    "grug_muon": _MUON,
    "lion": (),
    "mini": ("lr", "nesterov"),
    "muon": _MUON,
    "muonH": _MATRICES,
    "namo": _NAMO,
    "namoD": (*_NAMO, "col_state_clamp_c"),
}

KINDS = (
    "adam",
    "adamH",
    "adopt",
    "cautious",
    "grug_muon",
    "lion",
    "mini",
    "muon",
    "muonH",
    "namo",
    "namoD",
)
"""Levanter's names of the optimizers that run here, killed and resumed too."""
BROKEN: Mapping[str, str] = {
    "kron": "its first step does not end on a CPU",
    "mars": "it needs jax.tree_map, which jax has removed",
    "rmsprop": "it needs jax.tree_map, which jax has removed",
    "scion": "it needs jax.tree_map, which jax has removed",
    "soap": "its first step does not end on a CPU",
}
SCHEDULES = ("constant", "cosine", "linear", "inv", "inv_sqrt")
AVERAGE = "ema"
"""Levanter's name of the averaged weights in metrics: "eval/ema/loss", beside "eval/loss" of the weights themselves."""


@dataclass(frozen=True, kw_only=True)
class NamedOptimizerSpec:
    """An optimizer of Levanter's by name. What is None keeps Levanter's default for that kind.

    In each cycle the learning rate rises (warmup), stays, and falls by lr_schedule (decay). A number up to 1.0 is a
    share of the cycle; above, steps. `warmup=100, decay=0.2, lr_schedule="linear"` is WSD.
    """

    kind: str = versioned("adam")
    learning_rate: float = versioned(6e-4)
    """The peak. For muon, muonH, grug_muon, namo and namoD that of the matrices; the rest has `{"adam_lr": …}`."""
    weight_decay: float | None = versioned(None)
    warmup: float | None = versioned(None)
    decay: float | None = versioned(None)
    rewarmup: float | None = versioned(None)
    """The warmup of each cycle after the first."""
    lr_schedule: str | None = versioned(None)
    min_lr_ratio: float | None = versioned(None)
    """The lowest learning rate, as a share of the peak."""
    cycles: int | tuple[int, ...] | None = versioned(None)
    """Number of cycles, or the steps at which one ends."""
    cycle_length: float | tuple[int, ...] | None = versioned(None)
    """Steps of a cycle, or a share, or the steps of each. Not with `cycles`."""
    beta1: float | None = versioned(None)
    beta2: float | None = versioned(None)
    epsilon: float | None = versioned(None)
    max_grad_norm: float | None = versioned(None)
    """Gradients are clipped to this norm."""
    skip_bad_steps: bool | int | None = versioned(None)
    """Leave out the update of a step whose loss or gradient is far above those before. Of adam alone."""
    fields: dict[str, Any] = field(default_factory=lambda: versioned({}))
    """Further fields of the kind, by Levanter's names."""


OWN_FIELDS = frozenset(spec_field.name for spec_field in fields(NamedOptimizerSpec)) - {"kind", "fields"}


@dataclass(frozen=True, kw_only=True)
class LoopSpec:
    """The training loop, beyond the fields of TrainLmConfig."""

    batch_schedule: tuple[tuple[int, int], ...] | None = versioned(None)
    """(first step, sequences a step) of each stage; the first begins at 0. It replaces train_batch_size."""
    train_seq_len: int | None = versioned(None)
    """Tokens of a sequence; None: the model's max_seq_len."""
    z_loss_weight: float | None = versioned(None)
    """Weight of the squared logarithm of the softmax's sum. The validation loss does not include it."""
    ema_beta: float | None = versioned(None)
    """Keep an exponential moving average of the weights. It is evaluated too, and exported instead of them."""
    data_seed: int | None = versioned(None)
    """Seed of the order of the data; None: that of the training."""
    per_device_parallelism: int | None = None
    """Sequences at a time on each device: a smaller number accumulates gradients. None: all of a step."""
    per_device_eval_parallelism: int | None = None
    """None: as many as in training."""


def check_optimizer(spec: Any) -> None:
    """Raise TrainError for a kind, a number or a schedule that does not work. `spec`: an OptimizerSpec or a
    NamedOptimizerSpec, whose values have their types."""
    if isinstance(spec, NamedOptimizerSpec):
        _check_named(spec)
    if spec.lr_schedule is not None and spec.lr_schedule not in SCHEDULES:
        raise TrainError(f"lr_schedule is {spec.lr_schedule!r}, {expected_one_of(spec.lr_schedule, SCHEDULES)}")
    for name in ("warmup", "decay", "rewarmup"):
        value = getattr(spec, name, None)
        is_neither = value is not None and (value < 0 or (value > 1 and value % 1))
        if is_neither or (isinstance(value, int) and value == 1):
            raise TrainError(
                f"{name} is {value!r}, expected a share from 0.0 to 1.0, or steps from 2 on. Levanter reads 1 "
                "as the whole run: write 1.0 if you mean that."
            )
    require_above_0("learning_rate", spec.learning_rate)
    require_at_least("weight_decay", spec.weight_decay, 0)
    require_share("min_lr_ratio", spec.min_lr_ratio)


def _check_named(spec: NamedOptimizerSpec) -> None:
    if spec.kind in BROKEN:
        why = BROKEN[spec.kind]
        raise TrainError(f"The optimizer {spec.kind!r} cannot be used: {why}. Use one of {', '.join(KINDS)}.")
    if spec.kind not in KINDS:
        raise TrainError(f"The optimizer is {spec.kind!r}, {expected_one_of(spec.kind, KINDS)}")
    if spec.cycles is not None and spec.cycle_length is not None:
        raise TrainError(
            f"The optimizer has cycles={spec.cycles!r} and cycle_length={spec.cycle_length!r}. Set one of them."
        )
    require_share("beta1", spec.beta1, with_1=False)
    require_share("beta2", spec.beta2, with_1=False)
    require_above_0("epsilon", spec.epsilon)
    require_at_least("max_grad_norm", spec.max_grad_norm, 0)
    given = {name for name in ("skip_bad_steps",) if getattr(spec, name) is not None}
    _require_known_fields(spec.kind, [*given, *spec.fields])
    for name in spec.fields:
        if name in OWN_FIELDS and getattr(spec, name) is not None:
            raise TrainError(
                f"The optimizer has {name}={getattr(spec, name)!r} and fields={{{name!r}: {spec.fields[name]!r}}}, "
                "expected one of them. Leave it out of the fields."
            )


def check_loop(spec: LoopSpec) -> None:
    """Raise TrainError for a schedule of batches that is none, an average without memory, or a number out of bounds."""
    require_at_least("train_seq_len", spec.train_seq_len, 2, or_none=True)
    require_at_least("z_loss_weight", spec.z_loss_weight, 0, or_none=True)
    require_seed("data_seed", spec.data_seed)
    for name in ("per_device_parallelism", "per_device_eval_parallelism"):
        require_at_least(name, getattr(spec, name), 1, or_none=True)
    stages = spec.batch_schedule
    if stages is not None:
        starts = [start for start, _ in stages]
        if not stages or starts[0] != 0 or starts != sorted(set(starts)) or any(size < 1 for _, size in stages):
            raise TrainError(
                f"batch_schedule is {stages!r}, expected (first step, sequences) of each stage, the first step of the "
                "first being 0, each later one higher: ((0, 256), (10_000, 512))."
            )
    if spec.ema_beta is not None and not 0 <= spec.ema_beta < 1:
        raise TrainError(f"ema_beta is {spec.ema_beta!r}, expected a number from 0 to below 1, such as 0.995.")


def is_averaged(loop: LoopSpec | None) -> bool:
    """Whether the exported model is an average of the weights."""
    return loop is not None and loop.ema_beta is not None


def validation_loss_of(loop: LoopSpec | None) -> str:
    """The metric that is the validation loss of the exported model."""
    return f"eval/{AVERAGE}/loss" if is_averaged(loop) else "eval/loss"


def sequences_in(batch_size: int, loop: LoopSpec | None, first_step: int, end_step: int) -> int:
    """Count of the sequences that the steps from `first_step` to before `end_step` read."""
    stages = ((0, batch_size),) if loop is None or loop.batch_schedule is None else loop.batch_schedule
    ends = [start for start, _ in stages[1:]] + [end_step]
    return sum(
        size * max(min(end, end_step) - max(start, first_step), 0)
        for (start, size), end in zip(stages, ends, strict=True)
    )


def _require_known_fields(kind: str, names: Iterable[str]) -> None:
    """Raise TrainError for a field that the kind does not have."""
    allowed = {*OF_ALL, *OF_KIND[kind]}
    for name in names:
        if name not in allowed:
            names = [*sorted(OF_KIND[kind]), *sorted(OF_ALL)]
            raise TrainError(f"The optimizer {kind!r} has no field {name!r}, {expected_one_of(name, names)}")

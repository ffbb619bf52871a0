"""Config of reinforcement learning: the model, the lessons, the objective and the sampling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from marin_assets.inference.engine import Engine, require_engine
from marin_assets.stages.train.config import OptimizerSpec, TrainLmConfig
from marin_assets.stages.train.errors import InputError, TrainError
from marin_assets.stages.train.rl.curriculum.rules import Curriculum, check_curriculum
from marin_assets.stages.train.rl.lessons import Lesson, check_lessons
from marin_assets.stages.train.rl.objective import Objective, check_objective
from marin_assets.stages.train.specs.bounds import require_above_0, require_at_least
from marin_assets.stages.train.specs.model import HuggingFaceModel
from marin_assets.stages.train.specs.optimizer import NamedOptimizerSpec
from marin_assets.stages.train.specs.settings import check_settings
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.specs.trackers import Tracker
from marin_assets.stages.train.specs.types import check_types
from marin_assets.step.values import THIS_OUTPUT_PATH, VersionedValue, versioned, without_versions
from marin_resources.hardware.resources import Resources, cpu, slice_type
from marin_resources.types.near_names import expected_one_of

WAYS = ("file", "flight")
COUNTS = ("max_tokens", "groups", "groups_per_unit")
SCHEDULED, FREE = ORDERS = ("scheduled", "free")
VERSIONED_IF_SET = {"order": SCHEDULED, "most_extra_groups": None}
"""Fields that enter the version with any value but this."""


@dataclass(frozen=True, kw_only=True)
class ReplayBuffer:
    """Groups that further batches may have, in the free order, so that the training does not wait for new ones.

    A batch has the groups that no batch has had, the oldest first; if they are too few, those that batches have had
    least often, again the oldest first. A group that is more than `staleness` updates old is in no batch.
    """

    most_uses: int = versioned(1)
    """Batches that a group is in at most."""
    capacity: int | None = versioned(None)
    """Groups that are kept for further batches, at most: those of the fewest uses, and of these the newest. None: no
    limit."""


@dataclass(frozen=True, kw_only=True)
class TrainRlConfig:
    """The batch of each step is `groups` examples, each answered `group_size` times."""

    start: FromHuggingFace | None = None
    """The model that is trained. `default_rl` sets this field and the next two."""
    tokenizer_path: str = ""
    """Folder of the model's tokenizer; `start.path` has one, if it is an export."""
    lessons: dict[str, Lesson] = field(default_factory=dict)
    """Environments by name."""
    curriculum: Curriculum | None = None
    """Changes how often lessons are drawn, as the model learns them; None: always by their weights."""
    output_path: str = THIS_OUTPUT_PATH
    num_train_steps: int = versioned(100)
    groups: int = versioned(8)
    group_size: int = versioned(8)
    groups_per_unit: int = versioned(4)
    """A unit is sampled by itself, by one sampler. In the version, since the last digits of a likelihood depend on the
    texts that are computed with it."""
    staleness: int = versioned(0)
    """The batch of step s is sampled with the weights after max(0, s - staleness) updates: 0 is on policy, and 1 lets
    sampling and training happen at the same time. In the free order: with these weights or newer ones."""
    order: str = SCHEDULED
    """"scheduled": which weights sample which batch is fixed, and so is the result. "free": samplers take the newest
    weights, and a batch the oldest rollouts that are done: none waits for a slow one, and each run differs. Versioned
    if it is not "scheduled"; `default_rl` sees to that."""
    replay_buffer: ReplayBuffer | None = None
    """A setting of the free order; None: a group is in one batch."""
    most_extra_groups: int | None = None
    """Groups of which nothing can be learnt, as their rewards are all equal, are left out, and at most this number more
    are sampled for a step, so that its batch is full: dynamic sampling (DAPO, Yu et al. 2025). None: they are in the
    batch. Versioned if it is not None."""
    replay_of: str | None = None
    """Output of a finished training, whose rollouts are trained on again, in its batches: nothing is sampled. With its
    config this gives its weights, to the same bytes."""
    objective: Objective = field(default_factory=Objective)
    optimizer: OptimizerSpec | NamedOptimizerSpec = field(
        default_factory=lambda: NamedOptimizerSpec(
            learning_rate=versioned(1e-5),
            warmup=versioned(0.0),
            lr_schedule=versioned("constant"),
            weight_decay=versioned(0.0),
        )
    )
    temperature: float = versioned(1.0)
    """Divides the logits, in sampling and in the loss."""
    max_tokens: int = versioned(64)
    """Tokens that the model writes in an answer at most, in all its turns."""
    max_length: int | None = versioned(None)
    """Tokens of prompt, answer and replies together; None: the model's window. An answer that would be longer ends."""
    method_timeout_s: float = versioned(60.0)
    """Time limit of each call of an environment's method."""
    seed: int = versioned(0)
    precision: str = versioned("p=f32,c=f32")
    """jmp policy of parameters and compute, in sampling and in training."""
    samplers: int = 0
    """Processes that sample beside the training: on this machine, or wherever the cluster has room if the step is a job
    there. 0: the training's own process samples, before each step."""
    sampler_resources: Resources = field(default_factory=cpu)
    """Those of one process that samples, on a cluster: of one host."""
    engine: Engine | None = None
    """VLLM, or another Engine of its kind: each sampler has a vLLM server, in the free order. None: the project's own
    decoder."""
    weights_by: str = "file"
    """The way of the weights to the samplers: "file", below the output, or "flight", from the memory of the training by
    Arrow Flight, for large weights whose store is slow, such as a bucket."""
    tolerated_mismatch: float | None = None
    """The largest difference between a token's log-probability in sampling and in the loss by the same weights, at the
    first step; None: 1e-4, or 0.01 by vLLM, or 0.2 with a compute of 16 bits."""
    steps_per_checkpoint: int = 1000
    """Steps between permanent checkpoints."""
    keep_last_checkpoints: int | None = None
    checkpoint_interval_s: float = 600
    """Seconds between temporary checkpoints to resume from; each replaces the one before."""
    steps_per_hf_export: int | None = None
    """Steps between exports of the model in training; None: the trained model alone is exported."""
    trackers: tuple[Tracker, ...] = ()
    compilation_cache_dir: str | None = "~/.cache/marin/jax"

    def check_step(self, name: str, resources: Resources) -> None:
        """Called when a step with this config is created. Raises TrainError or InputError, with the step's name."""
        try:
            for field_name, default in VERSIONED_IF_SET.items():
                _require_versioned(field_name, getattr(self, field_name), default)
            self.check_fields()
        except (TrainError, InputError) as error:
            raise type(error)(f"Step {name!r}: {error}") from error

    def check_fields(self) -> None:
        """Raise TrainError or InputError for a value that a run could not use. No file is read, no class imported."""
        plain = without_versions(self)
        check_types(plain)
        if plain.start is None or plain.tokenizer_path == "":
            raise TrainError(
                f"start is {plain.start!r} and tokenizer_path {plain.tokenizer_path!r}, expected the model that is "
                "trained and its tokenizer. Use default_rl, or set both."
            )
        for name in COUNTS:
            require_at_least(name, getattr(plain, name), 1)
        for name in ("staleness", "samplers"):
            require_at_least(name, getattr(plain, name), 0)
        require_at_least("max_length", plain.max_length, 2, or_none=True)
        for name in ("temperature", "method_timeout_s", "tolerated_mismatch"):
            require_above_0(name, getattr(plain, name))
        if plain.weights_by not in WAYS:
            raise TrainError(f"weights_by is {plain.weights_by!r}, {expected_one_of(plain.weights_by, WAYS)}")
        _check_sampler_resources(plain.sampler_resources)
        _check_shape_of_batches(plain)
        _check_order(plain)
        if plain.engine is not None:
            _check_engine(plain)
        check_lessons(plain.lessons)
        if plain.curriculum is not None:
            check_curriculum(plain.curriculum, plain.lessons)
        check_objective(plain.objective)
        check_settings(as_training(plain))


def _check_sampler_resources(resources: Resources) -> None:
    tpu = resources.tpu
    if resources.slices > 1 or resources.more_slices or (tpu and slice_type(tpu.kind).hosts > 1):
        raise TrainError(
            f"sampler_resources are {resources.describe()}, expected those of one host, as a sampler is one process. "
            "Request a slice of one host, and more samplers."
        )


def _check_engine(config: TrainRlConfig) -> None:
    require_engine(config.engine)
    if not isinstance(config.engine, Engine) or config.engine.kind != "vllm":
        raise TrainError(
            f"The engine is of the kind {config.engine and config.engine.kind!r}, expected VLLM, which takes new "
            "weights, or None for the project's own decoder."
        )
    if config.order != FREE:
        raise TrainError(
            f"The engine is VLLM, and order is {config.order!r}: the last digits of its answers depend on what it "
            "computes at once, and each run of a schedule has the same. Pass order='free'."
        )
    if config.engine.servers != 1 or config.engine.server_resources is not None:
        raise TrainError(
            f"The engine has servers={config.engine.servers} and server_resources={config.engine.server_resources!r}, "
            "expected one server of each sampler. Set samplers and sampler_resources."
        )
    if config.sampler_resources.tpu is not None:
        raise TrainError(
            f"sampler_resources are {config.sampler_resources.describe()}, and vLLM's servers have CPUs or GPUs. Pass "
            "cpu(…) or gpu(…), or engine=None."
        )


def _check_shape_of_batches(config: TrainRlConfig) -> None:
    if config.group_size < 2:
        raise TrainError(
            f"group_size is {config.group_size}, expected at least 2: an answer is compared with others of its example."
        )
    if config.groups % config.groups_per_unit:
        raise TrainError(
            f"groups is {config.groups} and groups_per_unit {config.groups_per_unit}, expected a divisor of it."
        )
    if config.max_length is not None and config.max_tokens >= config.max_length:
        raise TrainError(
            f"max_tokens is {config.max_tokens} and max_length {config.max_length}, which leaves no room for a prompt. "
            "Raise max_length."
        )


def _check_order(config: TrainRlConfig) -> None:
    if config.order not in ORDERS:
        raise TrainError(f"order is {config.order!r}, {expected_one_of(config.order, ORDERS)}")
    if config.order == FREE and config.samplers == 0 and config.replay_of is None:
        raise TrainError(
            "order is 'free' and samplers 0, expected at least 1: in the free order other processes sample while the "
            "training trains."
        )
    if config.order == FREE and config.curriculum is not None:
        raise TrainError(
            "order is 'free' and a curriculum is set, which follows from the rollouts of earlier steps of a schedule. "
            "Leave one of them out."
        )
    if (extra := config.most_extra_groups) is not None:
        if extra < 1 or extra % config.groups_per_unit:
            raise TrainError(
                f"most_extra_groups is {extra} and groups_per_unit {config.groups_per_unit}, expected a multiple of "
                "it, or None."
            )
        if config.objective.kind == "reinforce":
            raise TrainError(
                "most_extra_groups is set, and the objective 'reinforce' compares rewards of the whole batch: it "
                "learns from groups whose rewards are equal. Pass another kind, or most_extra_groups=None."
            )
    if config.replay_buffer is not None:
        _check_buffer(config, config.replay_buffer)


def _check_buffer(config: TrainRlConfig, buffer: ReplayBuffer) -> None:
    if config.order != FREE:
        raise TrainError(f"replay_buffer is set, and order is {config.order!r}. It is of the order 'free'.")
    require_at_least("most_uses", buffer.most_uses, 1)
    if buffer.most_uses > config.staleness + 1:
        raise TrainError(
            f"most_uses is {buffer.most_uses} and staleness {config.staleness}, expected a staleness of at least "
            f"{buffer.most_uses - 1}: in each use after the first the rollouts are older by an update."
        )
    require_at_least("capacity", buffer.capacity, 1, or_none=True)


def _require_versioned(name: str, value: Any, default: Any) -> None:
    """Raise TrainError for a setting that would change the result, and not the version."""
    if value != default and not isinstance(value, VersionedValue):
        raise TrainError(f"{name} is {value!r}, expected versioned({value!r}): it changes the result.")


def as_training(config: TrainRlConfig) -> TrainLmConfig:
    """The config of the training by Levanter: one without data, as the batches are made."""
    assert config.start is not None, "check_fields has looked"
    training = TrainLmConfig(
        components={},
        tokenizer_path=config.tokenizer_path,
        output_path=config.output_path,
        train_weights=None,
        model=HuggingFaceModel(path=config.start.path),
        optimizer=config.optimizer,
        start=config.start,
        num_train_steps=config.num_train_steps,
        train_batch_size=config.groups * config.group_size,
        seed=config.seed,
        precision=config.precision,
        steps_per_checkpoint=config.steps_per_checkpoint,
        keep_last_checkpoints=config.keep_last_checkpoints,
        checkpoint_interval_s=config.checkpoint_interval_s,
        steps_per_hf_export=config.steps_per_hf_export,
        trackers=config.trackers,
        compilation_cache_dir=config.compilation_cache_dir,
    )
    return without_versions(training)

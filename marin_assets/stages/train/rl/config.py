"""Config of reinforcement learning: the model, the lessons, the objective and the sampling."""

from __future__ import annotations

from dataclasses import dataclass, field

from marin_assets.stages.train.config import OptimizerSpec, TrainLmConfig
from marin_assets.stages.train.errors import InputError, TrainError
from marin_assets.stages.train.rl.lessons import Lesson, check_lessons
from marin_assets.stages.train.rl.objective import Objective, check_objective
from marin_assets.stages.train.specs.bounds import require_above_0, require_at_least
from marin_assets.stages.train.specs.model import HuggingFaceModel
from marin_assets.stages.train.specs.optimizer import NamedOptimizerSpec
from marin_assets.stages.train.specs.settings import check_settings
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.specs.trackers import Tracker
from marin_assets.stages.train.specs.types import check_types
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned, without_versions
from marin_resources.hardware.resources import Resources, cpu, slice_type
from marin_resources.types.near_names import expected_one_of

WAYS = ("file", "flight")
COUNTS = ("max_tokens", "groups", "groups_per_unit")


@dataclass(frozen=True, kw_only=True)
class TrainRlConfig:
    """The batch of each step is `groups` examples, each answered `group_size` times."""

    start: FromHuggingFace | None = None
    """The model that is trained. `default_rl` sets this field and the next two."""
    tokenizer_path: str = ""
    """Folder of the model's tokenizer; `start.path` has one, if it is an export."""
    lessons: dict[str, Lesson] = field(default_factory=dict)
    """Environments by name."""
    output_path: str = THIS_OUTPUT_PATH
    num_train_steps: int = versioned(100)
    groups: int = versioned(8)
    group_size: int = versioned(8)
    groups_per_unit: int = versioned(4)
    """A unit is sampled by itself, by one sampler. In the version, since the last digits of a likelihood depend on the
    texts that are computed with it."""
    staleness: int = versioned(0)
    """The batch of step s is sampled with the weights after max(0, s - staleness) updates: 0 is on policy, and 1 lets
    sampling and training happen at the same time."""
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
    weights_by: str = "file"
    """The way of the weights to the samplers: "file", below the output, or "flight", from the memory of the training by
    Arrow Flight, for large weights whose store is slow, such as a bucket."""
    tolerated_mismatch: float | None = None
    """The largest difference between a token's log-probability in sampling and in the loss by the same weights, at the
    first step; None: 1e-4, or 0.2 with a compute of 16 bits."""
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
        check_lessons(plain.lessons)
        check_objective(plain.objective)
        check_settings(as_training(plain))


def _check_sampler_resources(resources: Resources) -> None:
    tpu = resources.tpu
    if resources.slices > 1 or resources.more_slices or (tpu and slice_type(tpu.kind).hosts > 1):
        raise TrainError(
            f"sampler_resources are {resources.describe()}, expected those of one host, as a sampler is one process. "
            "Request a slice of one host, and more samplers."
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

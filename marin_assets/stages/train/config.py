"""Config of a training run: the model, the optimizer, the data and the schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.train.errors import InputError, TrainError
from marin_assets.stages.train.formats import ChatSpec
from marin_assets.stages.train.memory import require_fit
from marin_assets.stages.train.specs.lora import LoraSpec
from marin_assets.stages.train.specs.mixture import Mixture
from marin_assets.stages.train.specs.model import HuggingFaceModel, ModelSpec
from marin_assets.stages.train.specs.optimizer import LoopSpec, NamedOptimizerSpec, is_averaged
from marin_assets.stages.train.specs.settings import check_settings
from marin_assets.stages.train.specs.start import FromCheckpoint, FromHuggingFace
from marin_assets.stages.train.specs.trackers import Tracker
from marin_assets.stages.train.specs.types import check_types
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned, without_versions
from marin_resources.hardware.resources import Resources


@dataclass(frozen=True, kw_only=True)
class LlamaSpec:
    """Shape of the model: fields of Levanter's LlamaConfig, whose other fields keep their defaults."""

    max_seq_len: int = versioned(128)
    hidden_dim: int = versioned(64)
    intermediate_dim: int = versioned(192)
    num_layers: int = versioned(2)
    num_heads: int = versioned(2)
    num_kv_heads: int = versioned(1)
    tie_word_embeddings: bool = versioned(True)


@dataclass(frozen=True, kw_only=True)
class OptimizerSpec:
    """Fields of Levanter's AdamConfig: AdamW with gradients clipped to norm 1."""

    learning_rate: float = versioned(7e-3)
    weight_decay: float = versioned(0.0)
    warmup: float = versioned(0.1)
    """Share of the steps in which the learning rate rises."""
    lr_schedule: str = versioned("cosine")
    min_lr_ratio: float = versioned(0.1)


@dataclass(frozen=True, kw_only=True)
class TrainLmConfig:
    components: dict[str, str]
    """Name -> path of a tokenized output, or of a snapshot of one: a component "name/key" for each partition."""
    tokenizer_path: str
    """Folder of the tokenizer that the caches were tokenized with."""
    output_path: str = THIS_OUTPUT_PATH
    train_weights: dict[str, float] | None = versioned(None)
    """Name -> share of the training sequences; None weights each component by its number of tokens."""
    mixture: Mixture | None = None
    """In place of `components` and `train_weights`: weights that vary by step, validation-only members, subsets."""
    model: LlamaSpec | ModelSpec | HuggingFaceModel = field(default_factory=LlamaSpec)
    optimizer: OptimizerSpec | NamedOptimizerSpec = field(default_factory=OptimizerSpec)
    loop: LoopSpec | None = None
    """Schedule of batches, average of the weights, z-loss and the like; None: Levanter's defaults."""
    levanter: dict[str, Any] | None = None
    """Any further field of Levanter's config, by its path: versioned({"optimizer.epsilon": 1e-9})."""
    start: FromCheckpoint | FromHuggingFace | None = None
    """The weights that the training starts from; None: random weights."""
    chat: ChatSpec | None = None
    """Treatment of the components that are chats; None if none is."""
    lora: LoraSpec | None = None
    """Trains factors beside the parameters of `start`; None trains all parameters."""
    num_train_steps: int = versioned(400)
    train_batch_size: int = versioned(16)
    """Sequences a step."""
    seed: int = versioned(0)
    precision: str = versioned("p=f32,c=f32")
    """jmp policy of parameters and compute. "p=f32,c=bfloat16" on accelerators."""
    steps_per_eval: int = 100
    max_eval_batches: int | None = 16
    """Batches of each component's validation side that an evaluation reads; None reads all."""
    steps_per_checkpoint: int = 1000
    """Steps between permanent checkpoints."""
    keep_last_checkpoints: int | None = None
    """Number of the newest permanent checkpoints to keep; None keeps all."""
    keep_checkpoints_every: int | None = None
    """With `keep_last_checkpoints`: those of steps that are multiples of this are kept too."""
    checkpoint_interval_s: float = 600
    """Seconds between temporary checkpoints to resume from; each replaces the one before."""
    stop_on_nan: bool = True
    """End the training when its loss is NaN or infinite, as it does not recover: the step fails with a sentence."""
    steps_per_hf_export: int | None = None
    """Steps between exports of the model in training, for evaluations of its checkpoints; None: the trained model alone
    is exported."""
    trackers: tuple[Tracker, ...] = ()
    """Destinations of the metrics besides metrics.jsonl: TensorBoard(), Wandb(project=…)."""
    compilation_cache_dir: str | None = "~/.cache/marin/jax"
    """Folder of jax's compilation cache, shared by all runs of this machine: it saves 7 of the 37 s of a nano run.
    None disables it."""

    def check_step(self, name: str, resources: Resources) -> None:
        """Called when a step with this config is created. Raises TrainError or InputError, with the step's name."""
        try:
            self.check_fields()
        except (TrainError, InputError) as error:
            raise type(error)(f"Step {name!r}: {error}") from error
        require_fit(without_versions(self), resources, name)

    def check_fields(self) -> None:
        """Raise TrainError or InputError for a value that a run could not use as it is written. No file is read."""
        plain = without_versions(self)
        check_types(plain)
        check_settings(plain)


@dataclass(frozen=True, kw_only=True)
class TrainDpoConfig(TrainLmConfig):
    """`components` has one name, with the path of tokenized preferences. `start` is the model that is trained."""

    beta: float = versioned(0.1)
    """Strength with which the model is held to the reference; Rafailov et al. 2023."""
    reference: FromHuggingFace | None = None
    """The model whose preferences are the zero; None: the one that is trained, as it was at the start."""

    def check_fields(self) -> None:
        super().check_fields()
        _check(without_versions(self))


def _check(config: TrainDpoConfig) -> None:
    if config.mixture is None and len(config.components) != 1:
        raise InputError(
            f"components names {sorted(config.components)}, expected one cache of preferences. Tokenize all "
            "preferences into one."
        )
    if config.mixture is not None:
        raise InputError("mixture is of train_lm, and DPO trains on one cache of pairs. Leave it None.")
    if config.train_weights is not None or config.chat is not None:
        raise InputError(
            "train_weights and chat are of train_lm, and DPO trains on one cache of pairs. Leave them None."
        )
    if not isinstance(config.start, FromHuggingFace):
        raise TrainError(
            f"start is {config.start!r}, and DPO begins with the model of a Hugging Face folder. Pass "
            "start=FromHuggingFace(path=…)."
        )
    if config.loop is not None and (config.loop.train_seq_len or config.loop.z_loss_weight):
        raise TrainError("loop has train_seq_len or z_loss_weight, which are of train_lm. Leave them None for DPO.")
    if is_averaged(config.loop) and config.lora is None:
        raise TrainError(
            f"ema_beta is {config.loop and config.loop.ema_beta!r}, and in DPO Levanter begins the average with random "
            "weights. Leave it None, or train factors with lora."
        )
    if config.lora is not None and config.reference is not None:
        raise TrainError("With lora the reference is the model below the factors. Pass reference=None, or no lora.")
    if not config.beta > 0:
        raise TrainError(f"beta is {config.beta!r}, expected a number above 0, such as 0.1.")

"""Config of a training run: the model, the optimizer, the data and the schedule."""

from __future__ import annotations

from dataclasses import dataclass, field

from marin_assets.stages.train.mixture import Mixture
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned


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
    model: LlamaSpec = field(default_factory=LlamaSpec)
    optimizer: OptimizerSpec = field(default_factory=OptimizerSpec)
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
    checkpoint_interval_s: float = 600
    """Seconds between temporary checkpoints to resume from; each replaces the one before."""
    steps_per_hf_export: int | None = None
    """Steps between exports of the model in training, for evaluations of its checkpoints; None: the trained model alone
    is exported."""
    compilation_cache_dir: str | None = "~/.cache/marin/jax"
    """Folder of jax's compilation cache, shared by all runs of this machine: it saves 7 of the 37 s of a nano run.
    None disables it."""

"""Config of an evaluation on environments."""

from __future__ import annotations

from dataclasses import dataclass, field

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.lessons import Lesson, check_lessons
from marin_assets.stages.train.specs.bounds import require_above_0, require_at_least
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources

COUNTS = ("examples", "examples_per_unit", "samples", "max_tokens")


@dataclass(frozen=True, kw_only=True)
class RlEvalConfig:
    """Each of `examples` of a lesson is answered `samples` times."""

    model_path: str = ""
    """Folder of a Hugging Face export. `default_rl_eval` sets this field and the next."""
    lessons: dict[str, Lesson] = field(default_factory=dict)
    """Environments by name. Weights do not count here: each has as many examples."""
    output_path: str = THIS_OUTPUT_PATH
    examples: int = versioned(100)
    """Number of those of each lesson. Their indices are above all that a training draws."""
    samples: int = versioned(8)
    pass_at: tuple[int, ...] = versioned(())
    """Numbers k of answers for pass@k, beside 1 and `samples`."""
    passing_reward: float = versioned(1.0)
    """The least reward of an answer that passes."""
    temperature: float = versioned(1.0)
    """Divides the logits; at 0 the likeliest token is taken, and `samples` is 1."""
    max_tokens: int = versioned(64)
    """Tokens that the model writes in an answer at most, in all its turns."""
    max_length: int | None = versioned(None)
    """Tokens of prompt, answer and replies together; None: the model's window."""
    examples_per_unit: int = versioned(16)
    """A unit is sampled at once, and what is sampled is kept if the step is killed. In the version, since the last
    digits of a likelihood depend on the texts that are computed with it."""
    method_timeout_s: float = versioned(60.0)
    """Time limit of each call of an environment's method."""
    seed: int = versioned(0)
    """Seed of the examples, and of the random numbers of the answers."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, check_fields, name)


def check_fields(config: RlEvalConfig) -> None:
    """Raise TrainError for a value that an evaluation could not use. No file is read, no class imported."""
    if config.model_path == "":
        raise TrainError("model_path is '', expected the folder of a Hugging Face export. Use default_rl_eval.")
    for name in COUNTS:
        require_at_least(name, getattr(config, name), 1)
    for name in ("temperature", "seed"):
        require_at_least(name, getattr(config, name), 0)
    require_at_least("max_length", config.max_length, 2, or_none=True)
    require_above_0("method_timeout_s", config.method_timeout_s)
    if config.temperature == 0 and config.samples > 1:
        raise TrainError(
            f"samples is {config.samples} at the temperature 0, where all answers to an example are equal. Set samples "
            "to 1, or raise the temperature."
        )
    if wrong := [k for k in config.pass_at if not 1 <= k <= config.samples]:
        raise TrainError(f"pass_at has {wrong[0]}, expected numbers from 1 to samples={config.samples}.")
    if config.max_length is not None and config.max_tokens >= config.max_length:
        raise TrainError(
            f"max_tokens is {config.max_tokens} and max_length {config.max_length}, which leaves no room for a prompt. "
            "Raise max_length."
        )
    check_lessons(config.lessons)

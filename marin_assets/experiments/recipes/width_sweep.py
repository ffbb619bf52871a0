"""Recipe: a sweep over learning rate and width, its plot, and the best of the models.

python -m marin_assets.experiments.recipes.width_sweep            nano models on Python's documentation
python -m marin_assets.experiments.recipes.width_sweep --dry-run
python -m marin_assets.experiments.recipes.width_sweep --scale 150m --tpu v5p-8 --documents gs://…/*.jsonl.zst
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets import Step, executor_main
from marin_assets.defaults import (
    default_comparison,
    default_download,
    default_python_text,
    default_report,
    default_tokenize,
    default_tokenizer,
    default_train,
    grid,
)
from marin_assets.run.recipe_options import take_recipe_options
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.model import ModelSpec
from marin_assets.stages.train.specs.presets import model_preset
from marin_assets.stages.train.train_lm import LlamaSpec
from marin_resources.hardware.resources import Resources, tpu


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes of each of the trainings, and what is varied."""

    model: LlamaSpec | ModelSpec
    vocab_size: int
    validation_fraction: float
    learning_rates: tuple[float, ...]
    widths: Mapping[str, Mapping[str, Any]]
    """Width -> the fields of the model that change with it."""
    training: SimpleTrainConfig
    resources: Resources | None = None


def width(hidden: int, mlp: int, heads: int) -> dict[str, int]:
    """Fields of a model whose heads keep their size."""
    return {
        "model.hidden_dim": hidden,
        "model.intermediate_dim": mlp,
        "model.num_heads": heads,
        "model.num_kv_heads": heads,
    }


NANO = Scale(
    model=LlamaSpec(),
    vocab_size=2048,
    validation_fraction=0.08,
    learning_rates=(1e-3, 4e-3, 1.6e-2),
    widths={"32": width(32, 96, 1), "64": width(64, 192, 2)},
    training=SimpleTrainConfig(
        train_batch_size=16,
        num_train_steps=80,
        learning_rate=1e-3,
        warmup=0.1,
        precision="p=f32,c=f32",
        steps_per_eval=80,
        max_eval_batches=8,
    ),
)
MILLIONS = Scale(
    model=model_preset("llama_150m"),
    vocab_size=128_256,
    validation_fraction=0.001,
    learning_rates=(1e-3, 2e-3, 4e-3, 8e-3),
    widths={"256": width(256, 896, 4), "512": width(512, 1792, 8), "1024": width(1024, 3584, 16)},
    training=SimpleTrainConfig(
        train_batch_size=256,
        num_train_steps=12_000,  # 3 billion tokens
        learning_rate=2e-3,
        weight_decay=0.1,
        warmup=1000,
        steps_per_eval=2000,
        max_eval_batches=64,
    ),
    resources=tpu("v5p-8"),
)
SOURCES = ("documents",)
SCALES = {"nano": NANO, "150m": MILLIONS}


def steps(
    scale: str = "nano", sources: Mapping[str, str] | None = None, train_on: Resources | None = None
) -> list[Step]:
    """Return all steps at a scale. `sources` has the "documents"; at "nano" they are Python's documentation.

    Raises ValueError for a scale above nano without documents.
    """
    size = SCALES[scale]
    name = "width-sweep" if scale == "nano" else f"width-sweep-{scale}"
    if sources is None and scale != "nano":
        raise ValueError(f"The scale {scale!r} has no data of its own. Give --documents.")
    if sources is None:
        text = default_python_text("recipes", vocab_size=size.vocab_size, validation_fraction=size.validation_fraction)
        read, tokenizer = text.documents, text.tokenizer
    else:
        read = default_download(name, sources["documents"])
        tokenizer = default_tokenizer(
            name, read, vocab_size=size.vocab_size, validation_fraction=size.validation_fraction
        )
    tokens = default_tokenize(name, read, tokenizer, validation_fraction=size.validation_fraction)
    base = default_train(name, tokens, size.model, size.training, resources=train_on or size.resources)
    rates = {f"{rate:g}": {"optimizer.learning_rate": rate} for rate in size.learning_rates}
    runs = grid(base, {"lr": rates, "width": size.widths})
    comparison = default_comparison(name, runs, metric="loss_end")
    by_label = {**{label: run.step for label, run in runs.items()}, "comparison": comparison}
    return [default_report(name, by_label, title=f"{name}: loss by learning rate and width")]


if __name__ == "__main__":
    executor_main(take_recipe_options(steps, scales=SCALES, sources=SOURCES))

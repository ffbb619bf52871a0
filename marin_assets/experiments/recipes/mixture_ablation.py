"""Recipe: an ablation over four mixtures of the same two sets, compared on the held-out side of each.

python -m marin_assets.experiments.recipes.mixture_ablation            nano models on Python's documentation
python -m marin_assets.experiments.recipes.mixture_ablation --dry-run
python -m marin_assets.experiments.recipes.mixture_ablation --scale 300m --tpu v5p-8 --prose gs://… --listings gs://…
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marin_assets import Step, executor_main
from marin_assets.defaults import (
    default_comparison,
    default_download,
    default_python_text,
    default_report,
    default_tokenize,
    default_tokenizer,
    default_train,
)
from marin_assets.mixtures import lm_mixture_data_config
from marin_assets.run.recipe_options import take_recipe_options
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.model import ModelSpec
from marin_assets.stages.train.specs.presets import model_preset
from marin_assets.stages.train.train_lm import LlamaSpec
from marin_resources.hardware.resources import Resources, tpu

SETS = ("prose", "listings")
MIXTURES: Mapping[str, Mapping[str, float]] = {
    "prose": {"prose": 1.0},
    "mostly-prose": {"prose": 0.75, "listings": 0.25},
    "mostly-listings": {"prose": 0.25, "listings": 0.75},
    "listings": {"listings": 1.0},
}
"""A set without a weight is validated on."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes of each of the trainings."""

    model: LlamaSpec | ModelSpec
    vocab_size: int
    validation_fraction: float
    mixture_block: int
    training: SimpleTrainConfig
    resources: Resources | None = None


NANO = Scale(
    model=LlamaSpec(),
    vocab_size=2048,
    validation_fraction=0.08,
    mixture_block=64,
    training=SimpleTrainConfig(
        train_batch_size=16,
        num_train_steps=120,
        learning_rate=7e-3,
        warmup=0.1,
        precision="p=f32,c=f32",
        steps_per_eval=60,
        max_eval_batches=8,
    ),
)
MILLIONS = Scale(
    model=model_preset("llama_300m"),
    vocab_size=128_256,
    validation_fraction=0.001,
    mixture_block=2048,
    training=SimpleTrainConfig(
        train_batch_size=512,
        num_train_steps=12_000,  # 6 billion tokens
        learning_rate=3e-3,
        weight_decay=0.1,
        warmup=1000,
        steps_per_eval=1000,
        max_eval_batches=64,
    ),
    resources=tpu("v5p-8"),
)
SCALES = {"nano": NANO, "300m": MILLIONS}


def steps(
    scale: str = "nano", sources: Mapping[str, str] | None = None, train_on: Resources | None = None
) -> list[Step]:
    """Return all steps at a scale. `sources` are the two sets of documents by name; at "nano" Python's documentation.

    Raises ValueError for a scale above nano without them.
    """
    size = SCALES[scale]
    name = "mixture-ablation" if scale == "nano" else f"mixture-ablation-{scale}"
    if sources is None and scale != "nano":
        raise ValueError(
            f"The scale {scale!r} has no data of its own. Give {', '.join(f'--{set_name}' for set_name in SETS)}."
        )
    if sources is None:
        text = default_python_text("recipes", vocab_size=size.vocab_size, validation_fraction=size.validation_fraction)
        documents, tokenizer = {"prose": text.prose, "listings": text.listings}, text.tokenizer
    else:
        documents = {
            set_name: default_download(f"{name}/{set_name}", sources[set_name]).as_input_name() for set_name in SETS
        }
        tokenizer = default_tokenizer(
            name, documents["prose"], vocab_size=size.vocab_size, validation_fraction=size.validation_fraction
        )
    tokenized = {
        set_name: default_tokenize(
            f"{name}/{set_name}-tokens", documents[set_name], tokenizer, validation_fraction=size.validation_fraction
        )
        for set_name in SETS
    }
    trainings = {
        label: default_train(
            f"{name}/{label}",
            lm_mixture_data_config(tokenized, weights, mixture_block_size=size.mixture_block),
            size.model,
            size.training,
            resources=train_on or size.resources,
        )
        for label, weights in MIXTURES.items()
    }
    comparison = default_comparison(
        name, trainings, metric="eval/macro_loss", further=[f"eval/{set_name}/loss" for set_name in SETS]
    )
    by_label = {**tokenized, **trainings, "comparison": comparison}
    return [default_report(name, by_label, title=f"{name}: four mixtures of two sets")]


if __name__ == "__main__":
    executor_main(take_recipe_options(steps, scales=SCALES, sources=SETS))

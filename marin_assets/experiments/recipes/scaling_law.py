"""Recipe: an isoflop sweep, the law of its losses, and a forecast of a larger model that is then trained.

python -m marin_assets.experiments.recipes.scaling_law            nano models on Python's documentation
python -m marin_assets.experiments.recipes.scaling_law --dry-run
python -m marin_assets.experiments.recipes.scaling_law --scale 1e19 --tpu v5p-8 --documents gs://…/*.jsonl.zst

A script runs the fit first, so that the forecast exists before the large training begins. Where all steps are
materialized at once, the page of the forecast states that it was not first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marin_assets import Step, executor_main, versioned
from marin_assets.defaults import (
    default_download,
    default_forecast_check,
    default_python_text,
    default_report,
    default_scaling_law,
    default_tokenize,
    default_tokenizer,
    isoflop,
)
from marin_assets.defaults.isoflop_sweep import IsoflopPoint
from marin_assets.run.recipe_options import take_recipe_options
from marin_assets.stages.scaling.isoflop import BestSize
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.specs.model import ModelSpec
from marin_assets.stages.train.specs.presets import model_preset
from marin_resources.hardware.resources import Resources, tpu


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Budgets, sizes, and the run that is forecast."""

    budgets: tuple[float, ...]
    sizes: Mapping[str, ModelSpec]
    around: BestSize | None
    """The best size to centre each budget's sizes on; None: all sizes for each budget."""
    target_flops: float
    target: ModelSpec
    vocab_size: int
    validation_fraction: float
    training: SimpleTrainConfig
    """Settings of all runs. Steps, batch and learning rate are those of the rule."""
    resources: Resources | None = None


def nano(width: int, layers: int) -> ModelSpec:
    """A Llama with heads of at most 32, and windows of 64 tokens."""
    heads = max(1, width // 32)
    return ModelSpec(
        max_seq_len=versioned(64),
        hidden_dim=versioned(width),
        intermediate_dim=versioned(3 * width),
        num_layers=versioned(layers),
        num_heads=versioned(heads),
        num_kv_heads=versioned(heads),
        tie_word_embeddings=versioned(True),
    )


NANO = Scale(
    budgets=(3e10, 1e11, 3e11),
    sizes={"8": nano(8, 1), "16": nano(16, 1), "32": nano(32, 1), "64": nano(64, 2)},
    around=None,
    target_flops=1.2e12,
    target=nano(32, 1),
    vocab_size=2048,
    validation_fraction=0.08,
    training=SimpleTrainConfig(
        train_batch_size=1,
        num_train_steps=2,
        learning_rate=1e-3,
        warmup=0.1,
        precision="p=f32,c=f32",
        steps_per_eval=1000,
        max_eval_batches=16,
    ),
)
SLICES = Scale(
    budgets=(1e18, 3e18, 6e18, 1e19),
    sizes={name: model_preset(f"llama_{name}") for name in ("30m", "50m", "75m", "150m", "300m", "600m")},
    around=BestSize(flops=1e19, params=2e8),
    target_flops=1e20,
    target=model_preset("llama_600m"),
    vocab_size=128_256,
    validation_fraction=0.001,
    training=SimpleTrainConfig(
        train_batch_size=1,
        num_train_steps=2,
        learning_rate=1e-3,
        weight_decay=0.1,
        warmup=0.02,
        steps_per_eval=2000,
        max_eval_batches=64,
    ),
    resources=tpu("v5p-8"),
)
SOURCES = ("documents",)
SCALES = {"nano": NANO, "1e19": SLICES}


def steps(
    scale: str = "nano", sources: Mapping[str, str] | None = None, train_on: Resources | None = None
) -> list[Step]:
    """Return the fit and the report of all. `sources` has the "documents"; at "nano" they are Python's documentation.

    Raises ValueError for a scale above nano without documents.
    """
    size = SCALES[scale]
    name = "scaling-law" if scale == "nano" else f"scaling-law-{scale}"
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

    def sweep(
        budgets: Sequence[float], sizes: Mapping[str, ModelSpec], around: BestSize | None = None
    ) -> dict[str, IsoflopPoint]:
        return isoflop(
            name,
            tokens,
            budgets,
            sizes,
            vocab_size=size.vocab_size,
            train_config=size.training,
            around=around,
            resources=train_on or size.resources,
        )

    runs = sweep(size.budgets, size.sizes, size.around)
    [target] = sweep([size.target_flops], {"target": size.target}).values()
    fit = default_scaling_law(name, runs, forecasts=[target.plan.forecast("target")])
    check = default_forecast_check(name, fit, {"target": target})
    by_label = {
        **{label: run.step for label, run in runs.items()},
        "law": fit,
        "target": target.step,
        "forecast": check,
    }
    return [fit, default_report(name, by_label, title=f"{name}: a law, and a forecast that came true or not")]


if __name__ == "__main__":
    law, *others = take_recipe_options(steps, scales=SCALES, sources=SOURCES)
    executor_main([law])  # its forecast is written before the target's training begins
    executor_main([law, *others])

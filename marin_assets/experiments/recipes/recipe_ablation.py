"""Recipe: an ablation over three ways to curate one crawl: the same model on each, compared on all held-out sides.

python -m marin_assets.experiments.recipes.recipe_ablation            nano models on a crawl of docstrings; five minutes
python -m marin_assets.experiments.recipes.recipe_ablation --dry-run
python -m marin_assets.experiments.recipes.recipe_ablation --crawl s3://commoncrawl/crawl-data/CC-MAIN-2024-22/warc.paths.gz

The three are `fineweb_like`, `dclm_like` and the best buckets of `nemotron_like`, with one tokenizer. A model is
validated on a held-out part of each, and on Python's documentation, which none of them has. `--crawl` is a WARC file, a
folder of them in any store, or a list of paths.
"""

from __future__ import annotations

from marin_assets import Step, executor_main
from marin_assets.defaults import (
    default_comparison,
    default_python_text,
    default_report,
    default_tokenize,
    default_tokenizer,
    default_train,
)
from marin_assets.experiments.recipes import dclm_like, fineweb_like, nemotron_like
from marin_assets.mixtures import lm_mixture_data_config
from marin_assets.run.recipe_options import take_source_option
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.train_lm import LlamaSpec

NAME = "recipe-ablation"
CRAWL: str | None = None
"""WARC files of your own; None: a crawl of docstrings, which recipes share."""
ELSEWHERE = "documentation"
"""The set that no model is trained on."""
TRAINING = SimpleTrainConfig(
    train_batch_size=16,
    num_train_steps=120,
    learning_rate=7e-3,
    warmup=0.1,
    precision="p=f32,c=f32",
    steps_per_eval=60,
    max_eval_batches=4,
)


def steps(crawl: str | None = CRAWL) -> list[Step]:
    """Return the steps from the WARC files at `crawl` to the comparison; None: of a crawl that is written here."""
    [fineweb], [dclm] = fineweb_like.steps(crawl), dclm_like.steps(crawl)
    curated = {"fineweb": fineweb, "dclm": dclm, "nemotron": nemotron_like.bucket_steps(crawl)["high"]}
    tokenizer = default_tokenizer("recipes/crawl", fineweb_like.document_steps(crawl), vocab_size=2048)
    documentation = default_python_text("recipes", vocab_size=2048, validation_fraction=0.08).prose
    tokens = {
        **curated,
        ELSEWHERE: default_tokenize(f"{NAME}/{ELSEWHERE}", documentation, tokenizer, validation_fraction=0.08),
    }
    trainings = {
        label: default_train(f"{NAME}/{label}", lm_mixture_data_config(tokens, {label: 1.0}), LlamaSpec(), TRAINING)
        for label in curated
    }
    comparison = default_comparison(
        NAME, trainings, metric=f"eval/{ELSEWHERE}/loss", further=[f"eval/{label}/loss" for label in curated]
    )
    by_label = {**tokens, **{f"model of {label}": model for label, model in trainings.items()}}
    return [default_report(NAME, {**by_label, "comparison": comparison}, title=f"{NAME}: three ways to curate a crawl")]


if __name__ == "__main__":
    executor_main(take_source_option(steps, "--crawl", CRAWL))

"""Recipe: Dolma (Soldaini et al. 2024, arXiv:2402.00159): subsets, each judged by its own rules, mixed by weights.

python -m marin_assets.experiments.recipes.dolma_like            docstrings and Python's documentation; two minutes
python -m marin_assets.experiments.recipes.dolma_like --dry-run
python -m marin_assets.experiments.recipes.dolma_like --crawl s3://commoncrawl/crawl-data/CC-MAIN-2023-06/warc.paths.gz

    web: English, with a score of at least 0.5         Dolma: the larger file of the same model
    web: Gopher's rules, and C4's lines                C4's rule for lines cuts those without a sentence's end
    web: at most five e-mail and IP addresses a page   other pages are rejected, those that are left are replaced
    web: paragraphs that occur before are cut          Dolma: a Bloom filter; here: exact
    reference: Python's documentation                  where Dolma has encyclopedias, books and papers
    one model on a mixture of the subsets

Dolma's classifier of toxic text is left out. `--crawl` is a WARC file, a folder of them in any store, or a list of
paths.
"""

from __future__ import annotations

from collections.abc import Mapping

from marin_assets import Step, executor_main, expect, output_path_of, step_group, versioned
from marin_assets.defaults import (
    default_consolidate,
    default_docstring_crawl,
    default_filters,
    default_languages,
    default_personal_data,
    default_python_text,
    default_tokenize,
    default_tokenizer,
    default_train,
    default_warc,
)
from marin_assets.defaults.environment import curated
from marin_assets.mixtures import lm_mixture_data_config
from marin_assets.run.recipe_options import take_source_option
from marin_assets.stages.dedup.exact_paragraphs import DuplicateParagraphsConfig, duplicate_paragraphs
from marin_assets.stages.filter.registry import named
from marin_assets.stages.personal_data.find_personal_data import FindPersonalDataConfig, find_personal_data
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.train_lm import LlamaSpec

NAME = "dolma_like"
CRAWL: str | None = None
"""WARC files of your own; None: a crawl of docstrings, which recipes share."""
FILTERS = ("gopher_quality@datatrove", "gopher_repetition@datatrove", "c4@datatrove")
WEIGHTS: Mapping[str, float] = {"web": 0.8, "reference": 0.2}
"""The subsets, and their weights in the mixture."""
TRAINING = SimpleTrainConfig(
    train_batch_size=16,
    num_train_steps=60,
    learning_rate=7e-3,
    warmup=0.1,
    precision="p=f32,c=f32",
    steps_per_eval=30,
    max_eval_batches=4,
)


def steps(crawl: str | None = CRAWL) -> list[Step]:
    """Return the steps from the WARC files at `crawl` to a model of all subsets; None: of an example."""
    source = default_docstring_crawl("recipes/warc") if crawl is None else crawl
    documents = default_warc("recipes/crawl", source, expectations=[expect("pages_kept", at_least=1)])
    reference = default_python_text("recipes", vocab_size=2048, validation_fraction=0.08)
    tokenizer = default_tokenizer("recipes/crawl", documents, vocab_size=2048)
    subsets = {"web": web(documents), "reference": reference.documents}
    tokens = {
        subset: default_tokenize(f"{NAME}/{subset}", kept, tokenizer, validation_fraction=0.05)
        for subset, kept in subsets.items()
    }
    return [default_train(NAME, lm_mixture_data_config(tokens, dict(WEIGHTS)), LlamaSpec(), TRAINING)]


def web(documents: Step) -> Step:
    """Return the subset of the web."""
    with step_group("web"):
        personal = curated(
            f"attributes/{NAME}/personal_data",
            find_personal_data,
            FindPersonalDataConfig(documents_path=output_path_of(documents), at_most=versioned(5)),
        )
        judged = {
            "language": default_languages(NAME, documents, ["en"], at_least=0.5),
            "filters": default_filters(NAME, documents, list(map(named, FILTERS))),
            "personal_data": personal,
        }
        selected = default_consolidate(f"selected/{NAME}", documents, judged, expectations=[expect("kept", at_least=1)])
        paragraphs = curated(
            f"attributes/{NAME}/duplicate_paragraphs",
            duplicate_paragraphs,
            DuplicateParagraphsConfig(documents_path=output_path_of(selected)),
        )
        unique = default_consolidate(f"consolidated/{NAME}", selected, {"duplicate_paragraphs": paragraphs})
        return default_personal_data(NAME, unique)


if __name__ == "__main__":
    executor_main(take_source_option(steps, "--crawl", CRAWL))

"""Recipe: DCLM-Baseline (Li et al. 2024, arXiv:2406.11794): pages of a crawl that a classifier prefers.

python -m marin_assets.experiments.recipes.dclm_like            a crawl of docstrings; a minute on two cores
python -m marin_assets.experiments.recipes.dclm_like --dry-run
python -m marin_assets.experiments.recipes.dclm_like --crawl s3://commoncrawl/crawl-data/CC-MAIN-2022-49/warc.paths.gz

    main content of each page                          resiliparse, as in DCLM, with rules of its own
    RefinedWeb's rules: text, quality, repetition,     the decisions are those of DCLM's code
      lines, and English with a score of at least 0.65
    passages of other pages are cut                    DCLM: a Bloom filter of 13 words; here: exact
    the tenth that a fastText classifier prefers       DCLM: OpenHermes 2.5 and ELI5 against pages of the crawl

The positive examples are the prose of Python's documentation, unless PREFERRED names others. The example keeps half of
the pages, as its crawl is small. `--crawl` is a WARC file, a folder of them in any store, or a list of paths.
"""

from __future__ import annotations

from marin_assets import Step, executor_main, expect, output_path_of, step_group, versioned
from marin_assets.defaults import (
    default_consolidate,
    default_docstring_crawl,
    default_filters,
    default_languages,
    default_python_text,
    default_tokenize,
    default_tokenizer,
    default_warc,
)
from marin_assets.defaults.environment import curated
from marin_assets.run.recipe_options import take_source_option
from marin_assets.stages.dedup.repeated_passages import RepeatedPassagesConfig, repeated_passages
from marin_assets.stages.filter.registry import dclm_filters
from marin_assets.stages.quality.score_quality import ScoreQualityConfig, score_quality
from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext

NAME = "dclm_like"
CRAWL: str | None = None
"""WARC files of your own; None: a crawl of docstrings, which recipes share."""
PREFERRED: str | None = None
"""Documents that the classifier prefers to those of the crawl; None: prose of Python's documentation."""


def steps(crawl: str | None = CRAWL) -> list[Step]:
    """Return the steps from the WARC files at `crawl` to tokens; None: of a crawl that is written here."""
    source = default_docstring_crawl("recipes/warc") if crawl is None else crawl
    documents = default_warc("recipes/crawl", source, expectations=[expect("pages_kept", at_least=1)])
    with step_group("filters"):
        judged = {
            "language": default_languages(NAME, documents, ["en"], at_least=0.65),
            "filters": default_filters(NAME, documents, dclm_filters()),
        }
        selected = default_consolidate(f"selected/{NAME}", documents, judged, expectations=[expect("kept", at_least=1)])
    with step_group("duplicates"):
        passages = curated(
            f"attributes/{NAME}/repeated_passages",
            repeated_passages,
            RepeatedPassagesConfig(
                documents_path=output_path_of(selected),
                words=versioned(13),
                unit=versioned("line"),
                document_share=versioned(0.8),
            ),
        )
        unique = default_consolidate(f"consolidated/{NAME}/unique", selected, {"repeated_passages": passages})
    preferred = default_python_text("recipes", vocab_size=2048, validation_fraction=0.08).prose
    with step_group("quality"):
        classifier = curated(
            f"classifiers/{NAME}",
            train_fasttext,
            TrainFastTextConfig(
                examples={"positive": preferred if PREFERRED is None else PREFERRED, "negative": output_path_of(unique)}
            ),
        )
        quality = curated(
            f"attributes/{NAME}/quality",
            score_quality,
            ScoreQualityConfig(
                documents_path=output_path_of(unique),
                model_path=output_path_of(classifier),
                keep_fraction=versioned(0.5 if crawl is None else 0.1),
            ),
        )
        best = default_consolidate(f"consolidated/{NAME}", unique, {"quality": quality})
    tokenizer = default_tokenizer("recipes/crawl", documents, vocab_size=2048)
    return [default_tokenize(NAME, best, tokenizer, validation_fraction=0.05)]


if __name__ == "__main__":
    executor_main(take_source_option(steps, "--crawl", CRAWL))

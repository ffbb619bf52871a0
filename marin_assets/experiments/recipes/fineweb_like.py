"""Recipe: FineWeb (Penedo et al. 2024, arXiv:2406.17557): pages of a crawl that are prose, each once.

python -m marin_assets.experiments.recipes.fineweb_like            a crawl of docstrings; a minute on two cores
python -m marin_assets.experiments.recipes.fineweb_like --dry-run
python -m marin_assets.experiments.recipes.fineweb_like --crawl https://data.commoncrawl.org/crawl-data/CC-MAIN-2024-22/warc.paths.gz

    main content of each page                          FineWeb: trafilatura; here: resiliparse, with rules of its own
    addresses of adult sites                           with URL_LISTS
    English, with a score of at least 0.65             FineWeb: the larger file of the same model
    Gopher's repetition and quality, C4, FineWeb's own the decisions are datatrove's
    near-duplicates of this crawl, one of each is kept FineWeb's MinHash: 14 bands of 8 hashes of 5 words
    e-mail and IP addresses are replaced               the kinds are those of FineWeb

`--crawl` is a WARC file, a folder of them in any store, or a list of paths. CRAWL has the same in this file.
"""

from __future__ import annotations

from marin_assets import Step, executor_main, expect, step_group
from marin_assets.defaults import (
    default_consolidate,
    default_docstring_crawl,
    default_filters,
    default_languages,
    default_near_duplicates,
    default_personal_data,
    default_tokenize,
    default_tokenizer,
    default_warc,
)
from marin_assets.run.recipe_options import take_source_option
from marin_assets.stages.filter.registry import fineweb_filters, named

NAME = "fineweb_like"
CRAWL: str | None = None
"""WARC files of your own; None: a crawl of docstrings, which recipes share."""
URL_LISTS: str | None = None
"""Folder or archive of lists of addresses, such as datatrove's wheel."""


def steps(crawl: str | None = CRAWL) -> list[Step]:
    """Return the steps from the WARC files at `crawl` to tokens; None: of a crawl that is written here."""
    clean = default_personal_data(NAME, unique_steps(crawl))
    tokenizer = default_tokenizer("recipes/crawl", document_steps(crawl), vocab_size=2048)
    return [default_tokenize(NAME, clean, tokenizer, validation_fraction=0.05)]


def document_steps(crawl: str | None) -> Step:
    """Return the main content of the pages."""
    source = default_docstring_crawl("recipes/warc") if crawl is None else crawl
    return default_warc("recipes/crawl", source, expectations=[expect("pages_kept", at_least=1)])


def unique_steps(crawl: str | None) -> Step:
    """Return the documents that all filters keep, each once."""
    documents = document_steps(crawl)
    addresses = [] if URL_LISTS is None else [named("url@refinedweb")]
    with step_group("filters"):
        judged = {
            "language": default_languages(NAME, documents, ["en"], at_least=0.65),
            "filters": default_filters(NAME, documents, [*addresses, *fineweb_filters()], url_lists=URL_LISTS),
        }
        selected = default_consolidate(f"selected/{NAME}", documents, judged, expectations=[expect("kept", at_least=1)])
    with step_group("duplicates"):
        copies = default_near_duplicates(NAME, selected)
        return default_consolidate(f"consolidated/{NAME}", selected, {"near_duplicates": copies})


if __name__ == "__main__":
    executor_main(take_source_option(steps, "--crawl", CRAWL))

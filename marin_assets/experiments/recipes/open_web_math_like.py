"""Recipe: OpenWebMath (Paster et al. 2023, arXiv:2310.06786): pages of a crawl with mathematics, formulas as TeX.

python -m marin_assets.experiments.recipes.open_web_math_like            docstrings of scipy; two minutes on two cores
python -m marin_assets.experiments.recipes.open_web_math_like --dry-run
python -m marin_assets.experiments.recipes.open_web_math_like --crawl s3://commoncrawl/crawl-data/CC-MAIN-2023-23/warc.paths.gz

    main content with formulas, as TeX between dollars OpenWebMath: its own extraction, on resiliparse
    pages with a formula, or with a score of a         OpenWebMath: .17 with a formula, .8 without
      classifier of mathematical text
    English, with a score of at least 0.5              OpenWebMath's threshold
    Gopher's repetition                                OpenWebMath's list of filters is longer
    near-duplicates                                    OpenWebMath: SimHash of .7; here: FineWeb's MinHash

Without its threshold on perplexity. The classifier learns which pages have formulas from the text around these.
`--crawl` is a WARC file, a folder of them in any store, or a list of paths.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from marin_assets import THIS_OUTPUT_PATH, Step, executor_main, expect, output_path_of, step_group, versioned
from marin_assets.defaults import (
    default_consolidate,
    default_docstring_crawl,
    default_filters,
    default_languages,
    default_near_duplicates,
    default_tokenize,
    default_tokenizer,
)
from marin_assets.defaults.environment import curated
from marin_assets.documents import Document, list_shards, read_documents, shard_name, write_documents
from marin_assets.inference.fasttext_model import find_model, load_classifier
from marin_assets.run.recipe_options import take_source_option
from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
from marin_assets.stages.filter.registry import named
from marin_assets.stages.quality.score_by_function import ScoreByFunctionConfig, score_by_function
from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext
from marin_assets.stages.transform.formulas.fields import Formulas
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_resources.storage.paths import join

NAME = "open_web_math_like"
CRAWL: str | None = None
"""WARC files of your own; None: a crawl of the docstrings of PACKAGES."""
PACKAGES = {"scipy": "1.17.1"}
FORMULA = re.compile(r"\$\$[^$]+\$\$|\$[^$\n]+\$")
AT_LEAST, AT_LEAST_WITHOUT = 0.17, 0.8
"""Scores of pages with a formula, and of those without."""


@dataclass(frozen=True, kw_only=True)
class ExamplesConfig:
    documents_path: str
    output_path: str = THIS_OUTPUT_PATH


def divide(config: ExamplesConfig) -> dict[str, int]:
    """Write the documents with formulas to "math" and the others to "others", without the formulas. Returns both
    counts."""
    counts = {"math": 0, "others": 0}
    for number, shard in enumerate(list_shards(config.documents_path)):
        sides: dict[str, list[Document]] = {"math": [], "others": []}
        for document in read_documents(shard):
            text, formulas = FORMULA.subn(" ", document.text)
            side = "math" if formulas else "others"
            counts[side] += 1
            sides[side].append(Document(id=document.id, text=text, source=side, metadata=document.metadata))
        for side, documents in sides.items():
            write_documents(join(config.output_path, side, shard_name(number, 1)), documents, replace=False)
    return counts


def math_score(model_path: str) -> Callable[[list[str]], list[dict[str, float]]]:
    """Return the scorer of `score_by_function`: 1 for mathematical text, else 0; and the classifier's score, and the
    number of formulas."""
    classifier = load_classifier(model_path, find_model(model_path)[1])

    def scored(text: str) -> dict[str, float]:
        without, formulas = FORMULA.subn(" ", text)
        score = classifier.score(without, "math")
        least = AT_LEAST if formulas else AT_LEAST_WITHOUT
        return {"value": float(score >= least), "score": score, "formulas": formulas}

    return lambda texts: list(map(scored, texts))


def steps(crawl: str | None = CRAWL) -> list[Step]:
    """Return the steps from the WARC files at `crawl` to tokens; None: of a crawl that is written here."""
    documents = document_steps(crawl)
    with step_group("mathematics"):
        examples = curated(f"examples/{NAME}", divide, ExamplesConfig(documents_path=output_path_of(documents)))
        classifier = curated(
            f"classifiers/{NAME}",
            train_fasttext,
            TrainFastTextConfig(
                examples={side: output_path_of(examples, side) for side in ("math", "others")},
                validation_fraction=versioned(0.2),
                epochs=versioned(25),
                learning_rate=versioned(0.5),
            ),
            expectations=[expect("accuracy_lower95", at_least=0.6)],
        )
        mathematics = curated(
            f"attributes/{NAME}/mathematics",
            score_by_function,
            ScoreByFunctionConfig(
                documents_path=output_path_of(documents),
                function=versioned("marin_assets.experiments.recipes.open_web_math_like:math_score"),
                model_path=output_path_of(classifier),
                at_least=versioned(1.0),
            ),
        )
    with step_group("filters"):
        judged = {
            "mathematics": mathematics,
            "language": default_languages(NAME, documents, ["en"], at_least=0.5),
            "filters": default_filters(NAME, documents, [named("gopher_repetition@datatrove")]),
        }
        selected = default_consolidate(f"selected/{NAME}", documents, judged, expectations=[expect("kept", at_least=1)])
    with step_group("duplicates"):
        unique = default_consolidate(
            f"consolidated/{NAME}", selected, {"near_duplicates": default_near_duplicates(NAME, selected)}
        )
    tokenizer = default_tokenizer(NAME, documents, vocab_size=2048)
    return [default_tokenize(NAME, unique, tokenizer, validation_fraction=0.05)]


def document_steps(crawl: str | None) -> Step:
    """Return the main content of the pages, with formulas."""
    example = default_docstring_crawl(f"{NAME}/warc", PACKAGES)
    path = output_path_of(example) if crawl is None else versioned(crawl)
    pages = curated(f"raw/{NAME}", read_warc, ReadWarcConfig(input_path=path, source=versioned(NAME)))
    config = HtmlToMarkdownConfig(
        pages_path=output_path_of(pages),
        main_content=MainContent(),
        formulas=Formulas(),
        max_characters=versioned(None),
    )
    return curated(f"documents/{NAME}", html_to_markdown, config, unaccounted="pages_unaccounted")


if __name__ == "__main__":
    executor_main(take_source_option(steps, "--crawl", CRAWL))

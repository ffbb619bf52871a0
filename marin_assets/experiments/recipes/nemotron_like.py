"""Recipe: Nemotron-CC (Su et al. 2024, arXiv:2412.02595): all pages of a crawl, in buckets by quality, and mixed.

python -m marin_assets.experiments.recipes.nemotron_like            a crawl of docstrings; two minutes on two cores
python -m marin_assets.experiments.recipes.nemotron_like --dry-run
python -m marin_assets.experiments.recipes.nemotron_like --crawl s3://commoncrawl/crawl-data/CC-MAIN-2024-22/warc.paths.gz

    main content of each page                          Nemotron-CC: jusText; here: resiliparse, with rules of its own
    English, near-duplicates                           one of each cluster is kept
    no heuristic filters                               as in Nemotron-CC, which has them for low quality alone
    several classifiers, the best rank counts          Nemotron-CC: three; here: two of fastText
    twenty ranks in five buckets                       the ranges are Nemotron-CC's; ranks are measured on a sample
    one model on a mixture of the buckets

Nemotron-CC also has a language model rephrase pages: `default_generation` does, for the documents of a bucket. What
Nemotron-CC has published itself is `default_nemotron_cc`. `--crawl` is a WARC file, a folder of them in any store, or a
list of paths.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from marin_assets import THIS_OUTPUT_PATH, InputName, Step, executor_main, expect, output_path_of, step_group, versioned
from marin_assets.defaults import (
    default_consolidate,
    default_docstring_crawl,
    default_languages,
    default_near_duplicates,
    default_python_text,
    default_tokenize,
    default_tokenizer,
    default_train,
    default_warc,
)
from marin_assets.defaults.environment import curated
from marin_assets.documents import list_shards, read_documents
from marin_assets.inference.fasttext_model import find_model, load_classifier
from marin_assets.mixtures import lm_mixture_data_config
from marin_assets.run.recipe_options import take_source_option
from marin_assets.stages.consolidate.attribute_spec import Applied
from marin_assets.stages.quality.score_by_function import ScoreByFunctionConfig, score_by_function
from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext
from marin_assets.stages.sample.sample_documents import SampleDocumentsConfig, sample_documents
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.train_lm import LlamaSpec
from marin_resources.storage.files import read_json, write_json
from marin_resources.storage.paths import join

NAME = "nemotron_like"
CRAWL: str | None = None
"""WARC files of your own; None: a crawl of docstrings, which recipes share."""
RANKS = 20
SAMPLED = 0.001
"""Share of the documents by which ranks are measured; of the example all."""
BUCKETS: Mapping[str, tuple[int, int]] = {
    "low": (0, 6),
    "medium_low": (7, 11),
    "medium": (12, 17),
    "medium_high": (18, 18),
    "high": (19, 19),
}
"""The lowest and the highest rank of each bucket."""
WEIGHTS: Mapping[str, float] = {"low": 1.33, "medium_low": 1.54, "medium": 3.38, "medium_high": 0.82, "high": 3.63}
"""Weights in the mixture: the sizes of the published buckets, in TiB."""
TRAINING = SimpleTrainConfig(
    train_batch_size=16,
    num_train_steps=60,
    learning_rate=7e-3,
    warmup=0.1,
    precision="p=f32,c=f32",
    steps_per_eval=30,
    max_eval_batches=4,
)


@dataclass(frozen=True, kw_only=True)
class RanksConfig:
    documents_path: str
    """The sample."""
    models: Sequence[str]
    """Outputs of `train_fasttext`."""
    output_path: str = THIS_OUTPUT_PATH


def measure_ranks(config: RanksConfig) -> dict[str, int]:
    """Write the scores at which each rank begins, of each classifier. Returns documents."""
    texts = [document.text for shard in list_shards(config.documents_path) for document in read_documents(shard)]
    borders = []
    for path in config.models:
        classifier = load_classifier(path, find_model(path)[1])
        scores = [classifier.score(text, "positive") for text in texts]
        borders.append(statistics.quantiles(scores, n=RANKS, method="inclusive"))
    write_json(join(config.output_path, "ranks.json"), borders)
    return {"documents": len(texts)}


def ensemble(model_path: str, models: Sequence[str]) -> Callable[[list[str]], list[int]]:
    """Return the scorer of `score_by_function`: the best rank of each text, 0 to RANKS - 1, of those that the `models`
    give it. `model_path` has what `measure_ranks` wrote."""
    borders = read_json(join(model_path, "ranks.json"))
    classifiers = [load_classifier(path, find_model(path)[1]) for path in models]

    def rank(text: str) -> int:
        scores = (classifier.score(text, "positive") for classifier in classifiers)
        return max(bisect_right(begins, score) for begins, score in zip(borders, scores, strict=True))

    return lambda texts: list(map(rank, texts))


def steps(crawl: str | None = CRAWL) -> list[Step]:
    """Return the steps from the WARC files at `crawl` to a model of all buckets; None: of an example."""
    tokens = bucket_steps(crawl)
    model = default_train(NAME, lm_mixture_data_config(tokens, dict(WEIGHTS)), LlamaSpec(), TRAINING)
    return [*tokens.values(), model]


def bucket_steps(crawl: str | None = CRAWL) -> dict[str, Step]:
    """Return the tokens of each bucket."""
    source = default_docstring_crawl("recipes/warc") if crawl is None else crawl
    documents = default_warc("recipes/crawl", source, expectations=[expect("pages_kept", at_least=1)])
    with step_group("duplicates"):
        english = default_consolidate(
            f"selected/{NAME}", documents, {"language": default_languages(NAME, documents, ["en"], at_least=0.3)}
        )
        unique = default_consolidate(
            f"consolidated/{NAME}", english, {"near_duplicates": default_near_duplicates(NAME, english)}
        )
    text = default_python_text("recipes", vocab_size=2048, validation_fraction=0.08)
    others: dict[str, InputName] = {"listings": text.listings, "crawl": output_path_of(unique)}
    with step_group("ranks"):
        classifiers = [
            curated(
                f"classifiers/{NAME}/prose_or_{kind}",
                train_fasttext,
                TrainFastTextConfig(examples={"positive": text.prose, "negative": negative}),
            )
            for kind, negative in others.items()
        ]
        models = [output_path_of(classifier) for classifier in classifiers]
        sample = curated(
            f"samples/{NAME}",
            sample_documents,
            SampleDocumentsConfig(
                documents_path=output_path_of(unique), fraction=versioned(1.0 if crawl is None else SAMPLED)
            ),
        )
        ranks = curated(
            f"classifiers/{NAME}/ranks",
            measure_ranks,
            RanksConfig(documents_path=output_path_of(sample), models=models),
        )
        quality = curated(
            f"attributes/{NAME}/quality",
            score_by_function,
            ScoreByFunctionConfig(
                documents_path=output_path_of(unique),
                function=versioned("marin_assets.experiments.recipes.nemotron_like:ensemble"),
                model_path=output_path_of(ranks),
                settings={"models": models},
            ),
        )
    tokenizer = default_tokenizer("recipes/crawl", documents, vocab_size=2048)
    tokens = {}
    with step_group("buckets"):
        for bucket, (lowest, highest) in BUCKETS.items():
            ranked = Applied(name="quality", path=output_path_of(quality), at_least=lowest, at_most=highest)
            kept = default_consolidate(f"consolidated/{NAME}/{bucket}", unique, [ranked])
            tokens[bucket] = default_tokenize(f"{NAME}/{bucket}", kept, tokenizer, validation_fraction=0.05)
    return tokens


if __name__ == "__main__":
    executor_main(take_source_option(steps, "--crawl", CRAWL))

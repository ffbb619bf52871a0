"""Build an evaluation set from the held-out pages.

In:  documents, shards of {id, text, metadata}.
Out: `questions.jsonl`, one {"id", "page", "ctx", "choices", "gold"} a line: about 260 characters of a held-out
     document, and four continuations of about 90 characters: the true one and three from other pages (the form of
     HellaSwag, Zellers et al. 2019);
     `texts.jsonl`, one {"id", "page", "text"} a line, for bits per byte;
     `documents/`, the held-out documents sampled from each shard.

Held out means on the validation side of the split that `tokenize` uses: whole pages, by a hash of their name.
The sample is the documents with the smallest hashes, so it depends neither on their order nor on their shards.
"""

from __future__ import annotations

import hashlib
import heapq
import logging
import random
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import Document, document_files, page_of, read_documents, shard_name, write_documents
from marin_assets.documents.position import VALIDATION, check_fraction, split_of
from marin_assets.stages.evaluate.jsonl import write_jsonl
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import StoredFile
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("jsonl",)

CHOICES = 4
SLACK_CHARACTERS = 40
"""Characters that a part of a passage may exceed its length by, to end at a single space between words."""

log = logging.getLogger(__name__)


class HeldOutError(MarinError, ValueError):
    """The held-out documents give too few questions. The message has the counts and the fields to change."""


@dataclass(frozen=True, kw_only=True)
class HeldOutConfig:
    documents_path: str
    """Documents on both sides of the split."""
    output_path: str = THIS_OUTPUT_PATH
    validation_fraction: float = versioned(0.05)
    """Share of the pages that are held out. The tokenized cache must use the same fraction."""
    questions: int = versioned(500)
    """Number of questions. With 500 questions of four choices, the standard error at chance is
    sqrt(0.25 * 0.75 / 500) = 0.019."""
    context_characters: int = versioned(260)
    """Length of a context. With the continuation it has about 100 tokens, which fits a window of 128."""
    continuation_characters: int = versioned(90)
    max_documents: int = versioned(1000)
    """Most held-out documents to sample. A web-scale corpus has far more than an evaluation needs."""
    seed: int = versioned(0)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A passage of a document that can become a question: a context and its continuation."""

    page: str
    context: str
    continuation: str


def make_held_out_set(config: HeldOutConfig) -> dict[str, Any]:
    """Write multiple-choice questions and texts of the pages that are held out from training.

    Returns questions, texts, pages, bytes (of the texts), documents, documents_held_out. Raises HeldOutError if the
    held-out documents give fewer questions than `config.questions`.
    """
    check_fraction(config.validation_fraction)
    files = document_files(config.documents_path)
    sources = files.shards
    targets = [join(config.output_path, "documents", shard_name(i, len(sources))) for i in range(len(sources))]
    shards = [
        HeldOutShard(
            inputs=(source,),
            target=target,
            validation_fraction=config.validation_fraction,
            max_documents=config.max_documents,
            seed=config.seed,
        )
        for source, target in zip(sources, targets, strict=True)
    ]
    counts = map_shards(sample_shard, shards, output_path=config.output_path)
    documents = sample((d for target in targets for d in read_documents(target)), config.max_documents, config.seed)
    pages = {page_of(document) for document in documents}
    questions = list(make_questions(documents, config))
    if len(questions) < config.questions:
        raise HeldOutError(
            f"The {len(documents)} held-out documents ({len(pages)} pages) in {config.documents_path!r} give "
            f"{len(questions)} questions, expected {config.questions}. Raise validation_fraction (now "
            f"{config.validation_fraction}) here and in the tokenized step, or lower questions."
        )
    texts = [{"id": d.id, "page": page_of(d), "text": d.text} for d in documents]
    write_jsonl(join(config.output_path, "questions.jsonl"), questions)
    write_jsonl(join(config.output_path, "texts.jsonl"), texts)
    log.info("%d questions, %d texts of %d pages", len(questions), len(texts), len(pages))
    return {
        "questions": len(questions),
        "texts": len(texts),
        "pages": len(pages),
        "bytes": sum(len(d.text.encode()) for d in documents),
        "documents": counts["documents"],
        "documents_held_out": counts["documents_held_out"],
        **files.counts,
    }


@dataclass(frozen=True, kw_only=True)
class HeldOutShard:
    """One shard of documents, with the config to sample it."""

    inputs: tuple[StoredFile, ...]
    """The file of documents."""
    target: str
    validation_fraction: float
    max_documents: int
    seed: int

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.target,)


def sample_shard(shard: HeldOutShard) -> Mapping[str, int]:
    """Write a sample of one shard's held-out documents. Returns the counts of all and of the held-out documents."""
    counts = {"documents": 0, "documents_held_out": 0}

    def held_out() -> Iterator[Document]:
        for document in read_documents(shard.inputs[0].path):
            counts["documents"] += 1
            if split_of(document, shard.validation_fraction) == VALIDATION:
                counts["documents_held_out"] += 1
                yield document

    write_documents(shard.target, sample(held_out(), shard.max_documents, shard.seed), replace=False)
    return counts


def sample(documents: Iterable[Document], count: int, seed: int) -> list[Document]:
    """Return the `count` documents with the smallest hashes, in the order of the hashes."""

    def rank(document: Document) -> bytes:
        return hashlib.sha256(f"{seed}\n{document.id}\n{document.text}".encode()).digest()

    return heapq.nsmallest(count, documents, key=rank)


def make_questions(documents: Sequence[Document], config: HeldOutConfig) -> Iterator[dict[str, Any]]:
    """Yield at most `config.questions` questions. No two have the same true continuation."""
    rng = random.Random(config.seed)
    passages = list({w.continuation: w for d in documents for w in passages_of(d, config)}.values())
    rng.shuffle(passages)
    for index, passage in enumerate(passages[: config.questions]):
        others = [other.continuation for other in passages if other.page != passage.page]
        if len(others) < CHOICES - 1:
            return
        choices = [passage.continuation, *rng.sample(others, CHOICES - 1)]
        rng.shuffle(choices)
        gold = choices.index(passage.continuation)
        yield {"id": index, "page": passage.page, "ctx": passage.context, "choices": choices, "gold": gold}


def passages_of(document: Document, config: HeldOutConfig) -> Iterator[Passage]:
    """Yield adjacent passages of a document. Context and continuation begin and end at single spaces between words."""
    text = document.text
    borders = [0, *(match.start() for match in re.finditer(r"(?<=\S) (?=\S)", text))]
    start = 0
    while start < len(borders) - 2:
        begin = borders[start] + (start > 0)
        turn = bisect_left(borders, begin + config.context_characters)
        if turn >= len(borders):
            return
        end = bisect_left(borders, borders[turn] + 1 + config.continuation_characters)
        if end >= len(borders):
            return
        context, continuation = text[begin : borders[turn]], text[borders[turn] + 1 : borders[end]]
        start += 1
        if (
            len(context) <= config.context_characters + SLACK_CHARACTERS
            and len(continuation) <= config.continuation_characters + SLACK_CHARACTERS
        ):
            yield Passage(page=page_of(document), context=context, continuation=continuation)
            start = end

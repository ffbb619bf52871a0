"""Label parts of Python's documentation: prose, and listings that pydoc rendered.

In:  documents of `html_to_markdown`, from `render_pydoc`'s pages.
Out: `positive/` and `negative/`, examples, shard for shard under the documents' names; an example is a document
     "<document id>/<n>" with its document's metadata.

Only unambiguous text becomes an example. A paragraph is prose if it has at least 25 words and ends like a sentence, if
four fifths of its words consist of letters only and a fifth are among 22 function words (about 40 % in English prose),
and if none of its lines belongs to a listing. A listing is a run of paragraphs in which every line is `NAME = type`, a
name, or a signature. Headings would reveal the listings, so no example contains one. Both kinds are split into pieces
of 20 to 60 words, so their length carries no information. All other lines are unsure:
lines = lines_positive + lines_negative + lines_unsure.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents import Document, document_files, document_shards, read_documents, write_documents
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

POSITIVE, NEGATIVE = "positive", "negative"
LABELS = (POSITIVE, NEGATIVE)

MIN_FUNCTION_WORDS, MIN_LETTERS_ALONE, MIN_PROSE_WORDS = 0.2, 0.8, 25
SENTENCE_ENDS = (".", "!", "?")

FUNCTION_WORD = re.compile(
    r"an?|and|are|as|be|by|for|if|in|is|it|not|of|on|or|that|the|this|to|which|with", re.IGNORECASE
)
HEADING = re.compile(
    r"(?:Data descriptors|Data and other attributes|Methods|Class methods|Static methods|Readonly properties)"
    r" (?:defined here|inherited from [\w.]+):$|Method resolution order:$|#{1,6} |([-*=~^])\1{2,}$|```"
)
ASSIGNMENT = re.compile(r"[\w.]+ = \S.*$")
NAME = re.compile(r"(?:- )?[\w.]+(?:\([\w., ]*\))?(?: \(package\))?$")
SIGNATURE = re.compile(r"(?:async )?[\w.]+(?: = [\w.]+)?\([^()]*(?:\([^()]*\)[^()]*)*\)(?: from [\w.]+)?$")


class WordsError(MarinError, ValueError):
    """Bounds of words that no example is within."""


@dataclass(frozen=True, kw_only=True)
class LabelPydocConfig:
    documents_path: str
    """Pydoc's pages as Markdown documents."""
    output_path: str = THIS_OUTPUT_PATH
    min_words: int = versioned(20)
    max_words: int = versioned(60)
    """Bounds of an example. Most paragraphs of docstrings have 25 to 60 words."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def label_pydoc(config: LabelPydocConfig) -> dict[str, int | float]:
    """Label unambiguous prose and listings.

    Returns documents, examples_positive, examples_negative, lines, lines_positive, lines_negative, lines_unsure.
    """
    _check(config)
    documents = document_files(config.documents_path)
    shards = document_shards(documents, join(config.output_path, POSITIVE), config)
    negative = document_shards(documents, join(config.output_path, NEGATIVE), config)
    both = [
        dataclasses.replace(shard, outputs=shard.outputs + negative_shard.outputs)
        for shard, negative_shard in zip(shards, negative, strict=True)
    ]
    return {**map_shards(label_shard, both, output_path=config.output_path), **documents.counts}


def _check(config: LabelPydocConfig) -> None:
    if not 1 <= config.min_words <= config.max_words:
        raise WordsError(
            f"min_words is {config.min_words!r} and max_words {config.max_words!r}, expected min_words of at least 1 "
            "and max_words no smaller. Pass for example 20 and 60."
        )


def label_shard(shard: FileShard) -> dict[str, int]:
    counts = Counter(
        documents=0, lines=0, **{f"{unit}_{label}": 0 for unit in ("examples", "lines") for label in LABELS}
    )
    half = len(shard.inputs)
    for label, targets in zip(LABELS, (shard.outputs[:half], shard.outputs[half:]), strict=True):
        for file, target in zip(shard.inputs, targets, strict=True):
            write_documents(target, _examples_of(file.path, label, shard.config, counts), replace=False)
    counts["lines_unsure"] = counts["lines"] - counts["lines_positive"] - counts["lines_negative"]
    return dict(counts)


def _examples_of(path: str, label: str, config: LabelPydocConfig, counts: Counter[str]) -> Iterator[Document]:
    for document in read_documents(path):
        if label == POSITIVE:  # each document is read twice, once for each label, and counted once
            counts["documents"] += 1
            counts["lines"] += sum(1 for line in document.text.splitlines() if line.strip())
        paragraphs = prose(document.text) if label == POSITIVE else listings(document.text)
        pieces = (piece for lines in paragraphs for piece in pieces_of(lines, config.min_words, config.max_words))
        for number, piece in enumerate(pieces):
            counts[f"examples_{label}"] += 1
            counts[f"lines_{label}"] += len(piece)
            yield dataclasses.replace(document, id=f"{document.id}/{number}", text="\n".join(piece))


def prose(text: str) -> Iterator[list[str]]:
    """Yield the paragraphs that are unambiguously prose, as lines, without a signature or heading above them."""
    for lines in _paragraphs(text):
        body = lines[1:] if _is_listed(lines[0]) or HEADING.match(lines[0]) else lines
        if body and not any(_is_listed(line) or HEADING.match(line) for line in body) and _is_prose(" ".join(body)):
            yield body


def listings(text: str) -> Iterator[list[str]]:
    """Yield the runs of lines that are unambiguously listings, without the headings between them."""
    run: list[str] = []
    for lines in _paragraphs(text):
        listed = [line for line in lines if not HEADING.match(line)]
        if all(map(_is_listed, listed)):
            run += listed
        elif run:
            yield run
            run = []
    if run:
        yield run


def pieces_of(lines: list[str], min_words: int, max_words: int) -> Iterator[list[str]]:
    """Yield runs of whole lines with at most `max_words` words. Runs of fewer than `min_words` are left out."""
    piece: list[str] = []
    words = 0
    for line in [*lines, None]:
        more = len(line.split()) if line is not None else 0
        if piece and (line is None or words + more > max_words):
            if min_words <= words <= max_words:
                yield piece
            piece, words = [], 0
        if line is not None:
            piece.append(line)
            words += more


def _paragraphs(text: str) -> Iterator[list[str]]:
    paragraph: list[str] = []
    for line in [*map(str.strip, text.splitlines()), ""]:
        if line:
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def _is_listed(line: str) -> bool:
    return bool(ASSIGNMENT.match(line) or NAME.match(line) or SIGNATURE.match(line))


def _is_prose(paragraph: str) -> bool:
    words = paragraph.split()
    if len(words) < MIN_PROSE_WORDS or not paragraph.endswith(SENTENCE_ENDS):
        return False
    letters = sum(word.strip(".,;:!?()\"'*`").isalpha() for word in words)
    function = sum(bool(FUNCTION_WORD.fullmatch(word)) for word in words)
    return letters >= MIN_LETTERS_ALONE * len(words) and function >= MIN_FUNCTION_WORDS * len(words)

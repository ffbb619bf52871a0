"""Cut repeated paragraphs (or lines) out of documents, except their first occurrence in the corpus.

In:  documents.
Out: attributes, shard for shard. `cut` holds the repeated paragraphs of a document, each with the blank line after it.
     A document without other text is rejected as "only_duplicate_paragraphs". `value` is the cut share of the
     document's characters. The first occurrence in the documents' order (shard name, row) is kept.

Paragraphs are identified by their place. See `exact_copies.py` for the phases and their memory. CCNet (Wenzek et al.
2020, arXiv:1911.00359) and Dolma (Soldaini et al. 2024, arXiv:2402.00159) remove repeated paragraphs across documents.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from marin_assets.documents import Document, read_documents
from marin_assets.documents.attributes import Decision, write_decisions
from marin_assets.documents.equal.copies import Copies, decide_copies
from marin_assets.documents.equal.hashes import (
    Batch,
    DuplicatesError,
    digest_of,
    require_normalization,
    write_hashes,
)
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts
from marin_resources.types.near_names import expected_one_of

SEPARATORS = {"paragraph": re.compile(r"\n\r?\n"), "line": re.compile(r"\n")}
"""Lines may end in CRLF: the CR at the end of a unit is stripped with its whitespace."""
Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class DuplicateParagraphsConfig:
    documents_path: str
    output_path: str = THIS_OUTPUT_PATH
    unit: str = versioned("paragraph")
    """"paragraph" (text between blank lines) or "line"."""
    min_characters: int = versioned(30)
    """A shorter unit, such as a heading, a closing bracket or "Returns:", is kept however often it occurs."""
    normalize: str = versioned("none")
    """Units are equal if their characters are, without blanks at both ends ("none"), or if they differ only in
    whitespace and case ("whitespace_and_case")."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def duplicate_paragraphs(config: DuplicateParagraphsConfig) -> dict[str, int | float]:
    """Write the attributes.

    Returns documents, kept, rejected, rejected_only_duplicate_paragraphs, documents_cut, characters_cut (of kept
    documents), characters, paragraphs (of at least `min_characters`), paragraphs_cut, and groups (of two or more equal
    paragraphs). Raises DuplicatesError for an invalid config.
    """
    _check(config)
    counts = decide_copies(
        config.documents_path, config.output_path, config, hash_units=hash_paragraphs, decide_units=decide_paragraphs
    )
    for name in ("rejected_only_duplicate_paragraphs", "documents_cut", "characters_cut"):
        counts.setdefault(name, 0)
    return counts


def _check(config: DuplicateParagraphsConfig) -> None:
    require_normalization(config.normalize)
    if config.unit not in SEPARATORS:
        raise DuplicatesError(f"unit is {config.unit!r}, {expected_one_of(config.unit, sorted(SEPARATORS))}")
    if config.min_characters < 1:
        raise DuplicatesError(
            f"min_characters is {config.min_characters!r}, expected 1 or more: empty units are not compared."
        )


def hash_paragraphs(shard: FileShard) -> Counts:
    """The first phase, for one group of shards. Returns units."""
    return {"units": write_hashes(shard.outputs[0], _hashed(shard))}


def _hashed(shard: FileShard) -> Iterator[Batch]:
    config = shard.config.config
    digest = digest_of(config.normalize)
    for number, file in enumerate(shard.inputs, start=shard.config.first_shard):
        ordinal = 0
        for document in read_documents(file.path):
            digests = [digest(paragraph) for _, _, paragraph in units(document.text, config)]
            yield digests, 0, number, ordinal
            ordinal += len(digests)


def decide_paragraphs(shard: FileShard) -> Counts:
    """The third phase, for one group of shards. Returns the counts of `duplicate_paragraphs` without groups."""
    copies = Copies(shard.config)
    counts = Counter[str](documents=0, kept=0, rejected=0, characters=0, paragraphs=0, paragraphs_cut=0)
    files = zip(shard.inputs, shard.outputs, strict=True)
    for number, (file, target) in enumerate(files, start=shard.config.first_shard):
        documents = read_documents(file.path)
        write_decisions(target, _decisions(documents, shard.config.config, copies, number, counts), counts)
    return dict(counts)


def _decisions(
    documents: Iterator[Document],
    config: DuplicateParagraphsConfig,
    copies: Copies,
    shard: int,
    counts: Counter[str],
) -> Iterator[tuple[str, Decision]]:
    ordinal = 0
    for document in documents:
        paragraphs = units(document.text, config)
        rejected = copies.rejected(shard, ordinal, len(paragraphs))
        repeated = [(start, end) for (start, end, _), cut in zip(paragraphs, rejected, strict=False) if cut]
        ordinal += len(paragraphs)
        counts["paragraphs"] += len(paragraphs)
        counts["paragraphs_cut"] += len(repeated)
        counts["characters"] += len(document.text)
        yield document.id, decision(document.text, repeated)


def units(text: str, config: DuplicateParagraphsConfig) -> list[tuple[int, int, str]]:
    """Return (start, end, text) of each unit of at least `min_characters`. The span includes the separator after it."""
    shortest, start = config.min_characters, 0
    spans: list[tuple[int, int, str]] = []
    separators = (match.span() for match in SEPARATORS[config.unit].finditer(text))
    for stop, end in (*separators, (len(text), len(text))):
        if stop - start >= shortest and len(stripped := text[start:stop].strip()) >= shortest:
            spans.append((start, end, stripped))
        start = end
    return spans


def decision(text: str, repeated: list[Span]) -> Decision:
    """Return the decision of a text whose spans `repeated` occurred earlier in the corpus."""
    if not repeated:
        return Decision(keep=True, value=0.0)
    if repeated[-1][1] == len(text):  # at the end of the text the separator before the span is cut too
        kept = text[: repeated[-1][0]].rstrip("\r\n")
        repeated = [*repeated[:-1], (max(len(kept), repeated[-2][1] if len(repeated) > 1 else 0), len(text))]
    cut = _joined(repeated)
    remaining = "".join(
        text[a:b] for a, b in zip([0, *(end for _, end in cut)], [*(s for s, _ in cut), len(text)], strict=True)
    )
    share = round(1 - len(remaining) / len(text), 6)
    if not remaining.strip():
        return Decision(keep=False, reason="only_duplicate_paragraphs", value=share)
    return Decision(keep=True, value=share, cut=tuple(cut))


def _joined(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in spans:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined

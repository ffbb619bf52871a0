"""Cut passages that occur earlier in the corpus: runs of words, or lines of which most runs occur earlier.

In:  documents.
Out: attributes, shard for shard. `cut` holds the repeated passages of a document; `value` is their share of its
     characters. A document without other text is rejected as "only_repeated_passages". One with a larger share of
     repeated runs than `document_share` is rejected as "repeated_document", with this share as `value`.

unit="run" cuts every run of at least `words` words that occurs earlier (exact substrings, Lee et al. 2022,
arXiv:2107.06499, which finds them by suffix arrays of tokens). unit="line" cuts lines of whose runs more than `share`
occur earlier, as the Bloom filters of Dolma (Soldaini et al. 2024, arXiv:2402.00159) and DCLM (Li et al. 2024,
arXiv:2406.11794) do, without their false positives: of equal runs the one with the smallest place counts as the first,
whatever became of it, so the result depends on neither shards nor workers. See `copies.py` for the phases: a record of
24 bytes for each word is on disk between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from marin_assets.documents import Document, read_documents
from marin_assets.documents.attributes import Decision, write_decisions
from marin_assets.documents.equal.copies import Copies, decide_copies
from marin_assets.documents.equal.hashes import MAX_RANK, Batch, DuplicatesError, write_hashes
from marin_assets.stages.dedup.word_runs import Span, covered, run_digests, words_of
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import Counts
from marin_resources.types.near_names import expected_one_of

RUN, LINE = UNITS = ("run", "line")
LINE_FEED = re.compile("\n")


@dataclass(frozen=True, kw_only=True)
class RepeatedPassagesConfig:
    documents_path: str
    output_path: str = THIS_OUTPUT_PATH
    words: int = versioned(50)
    """Words of a run; shorter passages are kept however often they occur. 50 tokens in Lee et al., 13 words in DCLM."""
    unit: str = versioned(RUN)
    """The parts to cut: "run", the words of runs that occur earlier, or "line", lines of which most runs do."""
    share: float = versioned(0.8)
    """For lines: the largest share of repeated runs in a line that is kept."""
    document_share: float | None = versioned(None)
    """The largest share of repeated runs in a document that is kept. None: documents are cut alone. 0.8 in DCLM."""
    ignore_case: bool = versioned(False)
    """Whether words are equal that differ only in case."""
    source_ranking: tuple[str, ...] = versioned(())
    """Order of sources: a passage counts as the first in the source that comes first, and of one source in the
    documents' order (shard name, row). Sources without a rank come last. Empty: the documents' order."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def repeated_passages(config: RepeatedPassagesConfig) -> dict[str, int | float]:
    """Write the attributes.

    Returns documents, kept, rejected, rejected_only_repeated_passages, rejected_repeated_document, documents_cut,
    characters_cut (of kept documents), characters, runs, runs_repeated, and groups (of two or more equal runs). Raises
    DuplicatesError for an invalid config.
    """
    _check(config)
    counts = decide_copies(
        config.documents_path, config.output_path, config, hash_units=hash_runs, decide_units=decide_passages
    )
    for name in ("rejected_only_repeated_passages", "rejected_repeated_document", "documents_cut", "characters_cut"):
        counts.setdefault(name, 0)
    return counts


def _check(config: RepeatedPassagesConfig) -> None:
    if config.unit not in UNITS:
        raise DuplicatesError(f"unit is {config.unit!r}, {expected_one_of(config.unit, UNITS)}")
    if type(config.words) is not int or config.words < 2:
        raise DuplicatesError(f"words is {config.words!r}, expected a whole number from 2 on, such as 50.")
    for name, share in (("share", config.share), ("document_share", config.document_share)):
        if share is None and name == "document_share":
            continue
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
            raise DuplicatesError(f"{name} is {share!r}, expected a number from 0 to below 1, such as 0.8.")
    ranking = config.source_ranking
    if isinstance(ranking, str) or len(set(ranking)) != len(ranking) or len(ranking) >= MAX_RANK:
        raise DuplicatesError(f"source_ranking is {ranking!r}, expected each source once and fewer than {MAX_RANK}.")


def hash_runs(shard: FileShard) -> Counts:
    """The first phase, for one group of shards. Returns units."""
    return {"units": write_hashes(shard.outputs[0], _hashed(shard))}


def _hashed(shard: FileShard) -> Iterator[Batch]:
    config: RepeatedPassagesConfig = shard.config.config
    ranks = {source: rank for rank, source in enumerate(config.source_ranking)}
    for number, file in enumerate(shard.inputs, start=shard.config.first_shard):
        ordinal = 0
        for document in read_documents(file.path):
            rank = ranks.get(document.source or "", len(ranks))
            for words in parts_of(document.text, config):
                digests = run_digests(document.text, words, config.words, config.ignore_case)
                yield digests, rank, number, ordinal
                ordinal += len(digests)


def parts_of(text: str, config: RepeatedPassagesConfig) -> list[list[Span]]:
    """Return the words of each part whose runs are compared: of the text, or of each of its lines."""
    if config.unit == RUN:
        return [words_of(text)]
    return [words_of(text, start, end) for start, end in _lines(text)]


def _lines(text: str) -> list[Span]:
    """Return the lines, each with its line feed."""
    ends = [match.end() for match in LINE_FEED.finditer(text)]
    return [(start, end) for start, end in pairwise([0, *ends, len(text)]) if start < end]


def decide_passages(shard: FileShard) -> Counts:
    """The third phase, for one group of shards. Returns the counts of `repeated_passages` without groups."""
    copies = Copies(shard.config)
    counts = Counter[str](documents=0, kept=0, rejected=0, characters=0, runs=0, runs_repeated=0)
    files = zip(shard.inputs, shard.outputs, strict=True)
    for number, (file, target) in enumerate(files, start=shard.config.first_shard):
        documents = read_documents(file.path)
        write_decisions(target, _decisions(documents, shard.config.config, copies, number, counts), counts)
    return dict(counts)


def _decisions(
    documents: Iterator[Document], config: RepeatedPassagesConfig, copies: Copies, shard: int, counts: Counter[str]
) -> Iterator[tuple[str, Decision]]:
    ordinal = 0
    for document in documents:
        parts: list[tuple[list[Span], list[bool]]] = []
        runs = repeated = 0
        for words in parts_of(document.text, config):
            number = max(len(words) - config.words + 1, 0)
            rejected = copies.rejected(shard, ordinal, number)
            parts.append((words, rejected))
            ordinal += number
            runs, repeated = runs + number, repeated + sum(rejected)
        counts.update(runs=runs, runs_repeated=repeated, characters=len(document.text))
        most = config.document_share
        if most is not None and runs and repeated / runs > most:
            yield document.id, Decision(keep=False, reason="repeated_document", value=round(repeated / runs, 6))
        else:
            yield document.id, decision(document.text, list(_cuts(document.text, parts, config)))


def _cuts(text: str, parts: Sequence[tuple[list[Span], list[bool]]], config: RepeatedPassagesConfig) -> Iterator[Span]:
    """Yield the passages of a text to cut, each with the white space after it."""
    if config.unit == RUN:
        [(words, repeated)] = parts
        for first, end in covered(repeated, config.words):
            yield words[first][0], words[end][0] if end < len(words) else len(text)
        return
    for (start, end), (words, repeated) in zip(_lines(text), parts, strict=True):
        runs = len(words) - config.words + 1
        if runs > 0 and sum(repeated) / runs > config.share:
            yield start, end


def decision(text: str, cut: list[Span]) -> Decision:
    """Return the decision of a text whose passages `cut` occur earlier."""
    if not cut:
        return Decision(keep=True, value=0.0)
    share = round(sum(end - start for start, end in cut) / len(text), 6)
    borders = [0, *(border for span in cut for border in span), len(text)]
    if all(text[start:end].isspace() for start, end in zip(borders[::2], borders[1::2], strict=True) if start < end):
        return Decision(keep=False, reason="only_repeated_passages", value=share)
    return Decision(keep=True, value=share, cut=tuple(cut))

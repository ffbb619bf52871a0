"""Find documents that contain questions of evaluations, by n-grams of 13 words (GPT-3: Brown et al. 2020,
arXiv:2005.14165).

In:  documents, and the questions of evaluations.
Out: attributes, shard for shard: "contaminated", value the largest share of one question's n-grams that the document
         contains;
     `contamination.json`, the report by evaluation and by question, with an example for each contaminated question;
     `ignored.npy`, uint64 hashes of the n-grams that were too common to count.

A document is contaminated if it contains at least `min_matches` different n-grams of one question, and at least
`min_share` of that question's n-grams. Two global phases, each as large as the evaluations: the index of n-grams
(`ngram_index.py`), stored in `.marin/` and loaded by each worker, and the sums of the findings of all shards. Documents
stream.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from marin_assets.documents import Document, DocumentFiles, document_files, document_shards, read_documents
from marin_assets.documents.attributes import KEPT, Decision, write_decisions
from marin_assets.documents.position import TRAIN, check_fraction, split_of
from marin_assets.stages.decontaminate.arrays import load_array, save_array, sha256_of
from marin_assets.stages.decontaminate.finder import Finder, FinderConfig, MatchConfig, question_sizes
from marin_assets.stages.decontaminate.ngram_index import NgramIndex, build_index, load_index, save_index
from marin_assets.stages.decontaminate.questions import read_questions
from marin_assets.stages.decontaminate.words import words_of
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.file_shards import FileShard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import exists, read_json, write_bytes, write_json
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import numpy as np

INDEX, COUNTS, FINDINGS = ".marin/ngrams.npz", ".marin/counts", ".marin/findings"
REPORT, IGNORED = "contamination.json", "ignored.npy"

TEXT_CHARACTERS = 1000
"""Limit on the text of a question in the report."""
RULE = ("ngram", "min_ngram", "min_matches", "min_share", "ignore_more_than")

log = logging.getLogger(__name__)


REPORT_VERSION = 1


class ContaminationError(MarinError, ValueError):
    """Nothing can be found with this config."""


@dataclass(frozen=True, kw_only=True)
class FindContaminationConfig:
    documents_path: str
    evaluations: dict[str, str]
    """Name to rows (JSONL or parquet, a file or a folder)."""
    output_path: str = THIS_OUTPUT_PATH
    fields: dict[str, list[str]] = versioned({})
    """Evaluation to the text fields of its rows, if they are not {"ctx", "choices", "gold"}."""
    ngram: int = versioned(13)
    """Length of an n-gram in words."""
    min_ngram: int = versioned(8)
    """A question of fewer words than `ngram` is one n-gram, if it has at least this many words (GPT-3's least n)."""
    min_matches: int = versioned(1)
    """Least number of different n-grams of one question; all of them, if the question has fewer."""
    min_share: float = versioned(0.0)
    """Least share of one question's n-grams. 0.5 tolerates documents that share a phrase with a question."""
    ignore_more_than: int | None = versioned(None)
    """Ignore n-grams that occur in more documents than this. GPT-3's limit was 10: most were boilerplate."""
    ignored_path: str | None = None
    """Output of an earlier run: ignore the n-grams that it ignored. Use it to check that its result is clean."""
    validation_fraction: float | None = versioned(None)
    """Decide about the training side only of this split. The validation side, the source of the questions, is kept."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def find_contamination(config: FindContaminationConfig) -> dict[str, Any]:
    """Find contaminated documents, and report which questions they contain.

    Returns documents, kept, rejected, rejected_contaminated, documents_held_out (not searched); questions,
    questions_contaminated, contaminated_share, questions_too_short, questions_too_common (all their n-grams are
    ignored; too short and too common questions cannot be found), questions_contaminated_<evaluation>, ngrams,
    ngrams_ignored. Raises ContaminationError, QuestionError.
    """
    _check(config)
    documents = document_files(config.documents_path)
    index, match, texts = _index(config)
    ignored = _ignored(config, documents, index, match)
    finder_config = FinderConfig(
        match=match,
        ignored_path=join(config.output_path, IGNORED),
        ignored_sha256=sha256_of(join(config.output_path, IGNORED)),
        min_matches=config.min_matches,
        min_share=config.min_share,
    )
    shards = document_shards(documents, config.output_path, finder_config)
    findings = document_shards(documents, join(config.output_path, FINDINGS), finder_config, suffix=".json")
    merged = [replace(s, outputs=s.outputs + f.outputs) for s, f in zip(shards, findings, strict=True)]
    counts = map_shards(find_shard, merged, output_path=config.output_path)
    rule = {name: getattr(config, name) for name in RULE}
    report = make_report(rule, index, texts, ignored, [path for shard in findings for path in shard.outputs])
    write_json(join(config.output_path, REPORT), report)
    totals = {key: value for key, value in report.items() if isinstance(value, int | float) and key != "format_version"}
    by_evaluation = {
        f"questions_contaminated_{name}": summary["questions_contaminated"]
        for name, summary in report["evaluations"].items()
    }
    log.info("%d of %d questions occur in documents", totals["questions_contaminated"], totals["questions"])
    return {"rejected_contaminated": 0, **counts, **totals, **by_evaluation, **documents.counts}


def _check(config: FindContaminationConfig) -> None:
    if not config.evaluations:
        raise ContaminationError("evaluations is empty, expected at least one. Pass {name: path of its questions}.")
    if not 1 <= config.min_ngram <= config.ngram:
        raise ContaminationError(
            f"ngram is {config.ngram!r} and min_ngram {config.min_ngram!r}, expected min_ngram of at least 1 and ngram "
            "no smaller. Pass for example 13 and 8."
        )
    if config.min_matches < 1 or not 0 <= config.min_share <= 1:
        raise ContaminationError(
            f"min_matches is {config.min_matches!r} and min_share {config.min_share!r}, expected 1 or more n-grams and "
            "a share from 0 to 1. Pass 1 and 0 to reject any match."
        )
    if config.ignore_more_than is not None and (config.ignore_more_than < 1 or config.ignored_path is not None):
        raise ContaminationError(
            f"ignore_more_than is {config.ignore_more_than!r} and ignored_path {config.ignored_path!r}, expected a "
            "number of documents of at least 1, or the output path of an earlier run. Pass one of them, or none."
        )
    if config.validation_fraction is not None:
        check_fraction(config.validation_fraction)


def _index(config: FindContaminationConfig) -> tuple[NgramIndex, MatchConfig, list[str]]:
    """The index of the questions, written, the config to match with it, and the texts of the questions."""
    questions = list(read_questions(config.evaluations, config.fields))
    index = build_index(questions, config.ngram, config.min_ngram)
    if not index.ngrams:
        raise ContaminationError(
            f"None of the {len(questions)} questions has {config.min_ngram} words, so none can be found. "
            "Pass other fields, or lower min_ngram."
        )
    path = join(config.output_path, INDEX)
    save_index(index, path)
    match = MatchConfig(index_path=path, index_sha256=sha256_of(path), validation_fraction=config.validation_fraction)
    return index, match, [question.text for question in questions]


def _ignored(
    config: FindContaminationConfig, documents: DocumentFiles, index: NgramIndex, match: MatchConfig
) -> np.ndarray:
    """Return the numbers of the n-grams to ignore, int64, and write their hashes to `ignored.npy`."""
    import numpy as np  # 0.1 s to import

    hashes = np.concatenate(index.keys)
    ignored = np.zeros(0, np.int64)
    if config.ignored_path is not None:
        earlier = join(config.ignored_path, IGNORED)
        if not exists(earlier):
            raise ContaminationError(f"{earlier!r} does not exist. Pass the output of find_contamination.")
        ignored = np.flatnonzero(np.isin(hashes, load_array(earlier)))
    elif config.ignore_more_than is not None:
        shards = document_shards(documents, join(config.output_path, COUNTS), match, suffix=".npy")
        map_shards(count_shard, shards, output_path=config.output_path)
        counts = np.zeros(index.ngrams, np.int64)
        for path in (path for shard in shards for path in shard.outputs):
            numbers, documents_of_ngrams = load_array(path)
            counts[numbers] += documents_of_ngrams
        ignored = np.flatnonzero(counts > config.ignore_more_than)
    save_array(join(config.output_path, IGNORED), np.sort(hashes[ignored]))
    return ignored


def count_shard(shard: FileShard) -> Mapping[str, int]:
    """Count the documents of each file that contain each n-gram: int64 (2, n-grams found), numbers and counts."""
    import numpy as np

    index = load_index(shard.config.index_path, shard.config.index_sha256)
    counted = 0
    for file, target in zip(shard.inputs, shard.outputs, strict=True):
        counts = np.zeros(index.ngrams, np.int64)
        for document in read_documents(file.path):
            if _is_searched(document, shard.config):
                counted += 1
                counts[index.match(words_of(document.text)).ngrams] += 1
        numbers = np.flatnonzero(counts)
        save_array(target, np.stack([numbers, counts[numbers]]))
    return {"counted": counted}


def _is_searched(document: Document, config: MatchConfig) -> bool:
    return config.validation_fraction is None or split_of(document, config.validation_fraction) == TRAIN


def find_shard(shard: FileShard) -> Mapping[str, int | float]:
    """Write the attributes and the findings of each file."""
    counts: Counter[str] = Counter(documents=0, kept=0, rejected=0, documents_held_out=0)
    half = len(shard.inputs)
    for file, target, findings in zip(shard.inputs, shard.outputs[:half], shard.outputs[half:], strict=True):
        finder = Finder(shard.config)
        write_decisions(target, _decisions(finder, file.path, counts), counts)
        compact = json.dumps(finder.findings()).encode()  # 10 times as fast as write_json, which indents
        write_bytes(findings, compact, replace=False)
    return dict(counts)


def _decisions(finder: Finder, path: str, counts: Counter[str]) -> Iterator[tuple[str, Decision]]:
    for document in read_documents(path):
        if _is_searched(document, finder.config.match):
            yield document.id, finder.decide(document)
        else:
            counts["documents_held_out"] += 1
            yield document.id, KEPT


def make_report(
    rule: dict[str, Any], index: NgramIndex, texts: Sequence[str], ignored: np.ndarray, findings: Sequence[str]
) -> dict[str, Any]:
    """Return the report of the files of `Finder.findings`; it includes `rule`.

    For each evaluation and for all: questions, questions_contaminated, contaminated_share, questions_too_short,
    questions_too_common. For each contaminated question: its text, cut, the number of its n-grams, the number of them
    that occur in contaminated documents, the number of documents, and the document with the largest share, with one
    n-gram's words and those around it. `texts`: those of the questions, by their numbers.
    """
    import numpy as np  # 0.1 s to import

    counted, seen = np.ones(index.ngrams, bool), np.zeros(index.ngrams, bool)
    counted[ignored] = False
    sizes = question_sizes(index, counted)
    contaminated: dict[int, dict[str, Any]] = {}
    for path in findings:
        finding = read_json(path)
        seen[finding["ngrams"]] = True
        for number, new in finding["questions"].items():
            old = contaminated.setdefault(int(number), {"documents": 0, "example": new["example"]})
            old["documents"] += new["documents"]
            old["example"] = max(old["example"], new["example"], key=lambda example: example["share"])  # first of ties
    matched = question_sizes(index, seen)
    totals = _totals(index, sizes, set(contaminated), range(len(sizes)))
    evaluations = {
        name: _totals(index, sizes, set(contaminated), [i for i, (of, _) in enumerate(index.names) if of == name])
        for name in dict.fromkeys(of for of, _ in index.names)
    }
    questions = [
        {
            "evaluation": index.names[number][0],
            "id": index.names[number][1],
            "text": texts[number][:TEXT_CHARACTERS],
            "ngrams": int(sizes[number]),
            "ngrams_found": int(matched[number]),
            **contaminated[number],
        }
        for number in sorted(contaminated)
    ]
    return {
        "format_version": REPORT_VERSION,
        "rule": rule,
        **totals,
        "ngrams": index.ngrams,
        "ngrams_ignored": len(ignored),
        "evaluations": evaluations,
        "questions_found": questions,
        "too_common": [list(index.names[i]) for i in np.flatnonzero((sizes == 0) & (index.sizes > 0))],
    }


def _totals(index: NgramIndex, sizes: np.ndarray, matched: set[int], numbers: Sequence[int]) -> dict[str, int | float]:
    contaminated = sum(number in matched for number in numbers)
    return {
        "questions": len(numbers),
        "questions_contaminated": contaminated,
        "contaminated_share": contaminated / len(numbers),
        "questions_too_short": sum(not index.sizes[number] for number in numbers),
        "questions_too_common": sum(bool(index.sizes[number]) and not sizes[number] for number in numbers),
    }

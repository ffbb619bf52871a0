"""Combine the findings of all shards into the report `contamination.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from marin_assets.stages.decontaminate.finder import question_sizes
from marin_assets.stages.decontaminate.ngram_index import NgramIndex
from marin_resources.storage.files import read_json

if TYPE_CHECKING:
    import numpy as np

REPORT_VERSION = 1


def make_report(
    rule: dict[str, Any], index: NgramIndex, ignored: np.ndarray, findings: Sequence[str]
) -> dict[str, Any]:
    """Return the report of the files of `Finder.findings`; it includes `rule`.

    For each evaluation and for all: questions, questions_contaminated, contaminated_share, questions_too_short,
    questions_too_common. For each contaminated question: the number of its n-grams, the number of them that occur in
    contaminated documents, the number of documents, and the document with the largest share, with one n-gram's words.
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

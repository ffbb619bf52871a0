"""Our forms of DCLM-Baseline's filters against DCLM's published code: the same documents and texts, and the speed.

    git clone https://github.com/mlfoundations/dclm CHECKOUT
    python tests/benchmarks/dclm_filters.py CHECKOUT [DOCUMENTS] [ROUNDS] [FILE]

The documents are texts of this machine's Python and spoilt ones (`sides/filters_texts.py`), and those of FILE, which
`sides/mixed_texts.py` writes. DCLM's code runs in an environment of its own. One process and one core each, turn by
turn; medians count.

    same decision   each family asked alone of every document: 99.9 % are kept by both or by none, with the same text
    speed          the four families in DCLM's order, from text to decision; reading and writing are in neither

Limit of the speed: 10 times DCLM's. Exits 1 if a limit is missed. Takes five minutes with 5,000 documents.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "sides"))

from filters import run_peer, write_texts
from filters_texts import texts
from mixed_words import read_texts

from marin_assets.documents import Document
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, decision_rule_of
from marin_assets.stages.filter.registry import dclm_filters, filter_of_thresholds
from marin_assets.stages.filter.spans import complement
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.words import splitter_named
from marin_assets.step.values import unwrap_versioned_value

PACKAGES = ("uniseg==0.10.1", "nltk", "unidecode", "fasttext-numpy2-wheel", "retrie", "numpy")
SAME = 0.999
SPEED = 10.0
TIMED = 1000
PRINTED = 10
Decisions = dict[str, tuple[bool, str, str | None]]
"""Family -> keep, reason and text after it, or None for the same text."""


def main() -> int:
    checkout = str(Path(sys.argv[1]).resolve())
    count, rounds = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((2, 5000), (3, 3)))
    documents = texts(count) if count else []
    documents += [text for _, text in read_texts(sys.argv[4])] if len(sys.argv) > 4 else []
    print(f"{len(documents)} documents, {sum(map(len, documents)) / 1e6:.1f} million characters")
    with tempfile.TemporaryDirectory() as folder:
        missed = compare_decisions(checkout, documents, folder)
        missed += compare_speed(checkout, documents[:: max(1, len(documents) // TIMED)], rounds, folder)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def compare_decisions(checkout: str, documents: list[str], folder: str) -> list[str]:
    path, out = f"{folder}/texts.jsonl", f"{folder}/decisions.jsonl"
    write_texts(path, documents)
    run_peer("filters_dclm.py", PACKAGES, checkout, path, "decisions", out)
    theirs = [json.loads(line) for line in Path(out).read_text().splitlines()]
    ours = list(map(decisions_of, documents))
    missed = []
    for family in ours[0]:
        pairs = [(a[family], b[family]) for a, b in zip(ours, theirs, strict=True)]
        different = [i for i, (a, b) in enumerate(pairs) if [a[0], a[2]] != b]
        reasons = Counter(a[1] for a, _ in pairs if not a[0])
        changed = sum(a[2] is not None for a, _ in pairs)
        same = 1 - len(different) / len(pairs)
        print(f"{family:16} same {same:8.3%}, {changed} texts changed; {dict(reasons.most_common())}")
        for i in different[:PRINTED]:
            print(
                f"    document {i}: {pairs[i][0][1] or 'kept'} here, {'kept' if pairs[i][1][0] else 'rejected'} there"
            )
        if same < SAME:
            missed.append(family)
    return missed


def decisions_of(text: str) -> Decisions:
    statistics_of = TextStatistics(text, splitter_named("fast"))
    decisions: Decisions = {}
    for spec in dclm_filters():
        thresholds = unwrap_versioned_value(spec.thresholds)
        decision = filter_of_thresholds(thresholds)(statistics_of, thresholds)
        left = "".join(text[a:b] for a, b in complement(decision.cut, len(text)))
        decisions[spec.name.partition("@")[0]] = (decision.keep, decision.reason, left if left != text else None)
    return decisions


def compare_speed(checkout: str, documents: list[str], rounds: int, folder: str) -> list[str]:
    path = f"{folder}/timed.jsonl"
    write_texts(path, documents)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(our_seconds(documents))
        theirs.append(run_peer("filters_dclm.py", PACKAGES, checkout, path, "seconds"))
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    ratio = statistics.median(ratios)
    print(f"DCLM  {len(documents) / statistics.median(theirs):8.0f} documents a second")
    print(
        f"here  {len(documents) / statistics.median(ours):8.0f} documents a second, {ratio:.1f} times (limit {SPEED:g})"
    )
    return [] if ratio >= SPEED else ["speed"]


def our_seconds(texts_in_order: list[str]) -> float:
    config = FilterDocumentsConfig(documents_path="", output_path="", filters=dclm_filters(), words="fast")
    decide = decision_rule_of(unwrap_versioned_value(config))
    decide(Document(id="warm", text="Some words. " * 100))
    documents = [Document(id=str(i), text=text) for i, text in enumerate(texts_in_order)]
    began = time.process_time()
    for document in documents:
        decide(document)
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())

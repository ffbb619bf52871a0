"""FineWeb-2's filters of each language against datatrove 0.10's: the same decisions, and how many more a second.

    python tests/benchmarks/fineweb2_filters.py FILE

FILE holds Debian's texts, as `sides/mixed_texts.py` writes them; those in languages that spaCy has rules for are asked,
with `words="spacy"` and the language. datatrove runs in an environment of its own, with FineWeb-2's thresholds.

    same decision   each filter asked alone of every document: 99.9 % have the same decision in each family
    speed          CPU seconds of all three filters on all documents, each in one process; words that were split before
                   are remembered on both sides, or not, as they are in use

Limit of the speed: twice datatrove's. Exits 1 if a limit is missed. Takes five minutes with 8,000 documents.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "sides"))

from filters import run_peer
from mixed_words import read_texts

from marin_assets.stages.filter.registry import filter_of_thresholds, fineweb2_filters
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.words import splitter_named
from marin_assets.step.values import unwrap_versioned_value

PACKAGES = ("datatrove[processing]==0.10.1", "spacy==3.8.18", "regex", "numpy")
TAGS = {
    "German": "deu_Latn",
    "French": "fra_Latn",
    "Spanish": "spa_Latn",
    "Italian": "ita_Latn",
    "Polish": "pol_Latn",
    "Turkish": "tur_Latn",
    "Russian": "rus_Cyrl",
    "Ukrainian": "ukr_Cyrl",
}
FAMILIES = ("gopher_repetition", "fineweb", "gopher_quality")
SAME, SPEED, PRINTED = 0.999, 2.0, 10


def main() -> int:
    named = [(TAGS.get(source.rpartition(" ")[2]), text) for source, text in read_texts(sys.argv[1])]
    rows = [(tag, text) for tag, text in named if tag is not None]
    thresholds = {tag: thresholds_of(tag) for tag in TAGS.values()}
    with tempfile.TemporaryDirectory() as folder:
        texts, given, out = (Path(folder, name) for name in ("texts.jsonl", "thresholds.json", "out.jsonl"))
        texts.write_text("".join(json.dumps({"tag": tag, "text": text}) + "\n" for tag, text in rows))
        given.write_text(json.dumps({tag: as_json(families) for tag, families in thresholds.items()}))
        theirs_s = run_peer("fineweb2_datatrove.py", PACKAGES, str(texts), str(given), str(out))
        theirs = [json.loads(line) for line in out.read_text().splitlines()]
    ours, ours_s = decisions_of(rows, thresholds)
    missed = []
    for family in FAMILIES:
        different = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a[family][0] != b[family][0]]
        same = 1 - len(different) / len(rows)
        by_tag = Counter(rows[i][0] for i in different)
        kept = sum(row[family][0] for row in theirs)
        print(f"{family:18} same {same:.3%} of {len(rows)}, {kept} kept there; different: {dict(by_tag)}")
        for i in different[:PRINTED]:
            here, there = (side[i][family][1] or "kept" for side in (ours, theirs))
            print(f"    document {i}, {rows[i][0]}: {here} here, {there} there")
        if same < SAME:
            missed.append(family)
    print(f"{theirs_s / ours_s:.1f} times as fast (limit {SPEED:g}): {ours_s:.1f} s here, {theirs_s:.1f} s there")
    missed += [] if theirs_s / ours_s >= SPEED else ["speed"]
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def thresholds_of(tag: str) -> dict[str, Any]:
    return {spec.name.partition("@")[0]: unwrap_versioned_value(spec.thresholds) for spec in fineweb2_filters(tag)}


def as_json(families: dict[str, Any]) -> dict[str, Any]:
    return {name: dataclasses.asdict(thresholds) for name, thresholds in families.items()}


def decisions_of(
    rows: list[tuple[str, str]], thresholds: dict[str, dict[str, Any]]
) -> tuple[list[dict[str, tuple[bool, str]]], float]:
    """The decision and reason of each family for each document, and the seconds of this process."""
    for tag in thresholds:
        splitter_named("spacy", tag).words("Some words. " * 100)
    began = time.process_time()
    decisions: list[dict[str, tuple[bool, str]]] = []
    for tag, text in rows:
        measured = TextStatistics(text, splitter_named("spacy", tag))
        row = {name: filter_of_thresholds(given)(measured, given) for name, given in thresholds[tag].items()}
        decisions.append({name: (decision.keep, decision.reason) for name, decision in row.items()})
    return decisions, time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())

"""Decisions with the words of each splitter against datatrove 0.9's, on texts in many languages.

    python tests/benchmarks/mixed_words.py [PER_SOURCE] [FILE]

The texts are Debian's manual pages in 21 languages, references and fortunes in six, and the kernel's documentation with
its translations (`sides/mixed_texts.py`, which downloads the packages; FILE holds texts that it wrote before).
datatrove runs in an environment of its own. Each filter is asked alone. For each filter and source: how many datatrove
keeps, and with each splitter the share of equal decisions and, of the documents that datatrove keeps, the share that is
rejected.

Limit: 99.9 % equal decisions for each filter on all texts together, with the default splitter. Exits 1 if it is missed.
Takes five minutes with 300 texts of each source.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "sides"))

from filters import FILTERS, SAME, run_datatrove, write_texts
from mixed_texts import mixed_texts

from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig
from marin_assets.stages.filter.registry import filter_of_thresholds, named
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.words import splitter_named
from marin_assets.step.values import unwrap_versioned_value

SPLITTERS = ("spacy", "fast")
Kept = dict[str, list[bool]]
"""Filter -> whether each document is kept."""


def main() -> int:
    per_source = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rows = read_texts(sys.argv[2]) if len(sys.argv) > 2 else mixed_texts(per_source)
    sources, texts = [source for source, _ in rows], [text for _, text in rows]
    print(f"{len(texts)} documents, {sum(map(len, texts)) / 1e6:.1f} million characters")
    theirs = datatroves(texts)
    ours = {words: kept_with(texts, words) for words in SPLITTERS}
    default = unwrap_versioned_value(FilterDocumentsConfig(documents_path="", output_path="")).words
    missed = []
    for name in FILTERS:
        print(f"\n{name:26} kept by datatrove   " + "   ".join(f"{words:>5}: same, lost" for words in SPLITTERS))
        for source in [*dict.fromkeys(sources), "all"]:
            which = [i for i, one in enumerate(sources) if source in (one, "all")]
            shares = {words: compared(theirs[name], ours[words][name], which) for words in SPLITTERS}
            kept = sum(theirs[name][i] for i in which)
            line = "   ".join(f"{same:11.1%} {lost:6.1%}" for same, lost in shares.values())
            print(f"  {source:24} {kept:6} of {len(which):5}   {line}")
        if shares[default][0] < SAME:
            missed.append(f"{name} with {default!r}")
    print("\nmissed: " + ", ".join(missed) if missed else "\nall limits held")
    return 1 if missed else 0


def read_texts(path: str) -> list[tuple[str, str]]:
    rows = map(json.loads, Path(path).read_text().splitlines())
    return [(row["source"], row["text"]) for row in rows]


def datatroves(texts: list[str]) -> Kept:
    with tempfile.TemporaryDirectory() as folder:
        write_texts(f"{folder}/texts.jsonl", texts)
        run_datatrove(f"{folder}/texts.jsonl", "decisions", f"{folder}/decisions.jsonl")
        rows = [json.loads(line) for line in Path(f"{folder}/decisions.jsonl").read_text().splitlines()]
    return {name: [row[name][0] for row in rows] for name in FILTERS}


def kept_with(texts: list[str], words: str) -> Kept:
    thresholds = {name: unwrap_versioned_value(named(set_name).thresholds) for name, set_name in FILTERS.items()}
    splitter, kept = splitter_named(words), defaultdict(list)
    began = time.process_time()
    for text in texts:
        statistics = TextStatistics(text, splitter)
        for name, one in thresholds.items():
            kept[name].append(filter_of_thresholds(one)(statistics, one).keep)
    print(f"words={words!r}: {len(texts) / (time.process_time() - began):,.0f} documents a second, each filter alone")
    return kept


def compared(theirs: list[bool], ours: list[bool], which: list[int]) -> tuple[float, float]:
    """Return the share of equal decisions, and of the documents that are kept there the share that is rejected here."""
    kept = [i for i in which if theirs[i]]
    same = sum(theirs[i] == ours[i] for i in which) / len(which)
    return same, sum(not ours[i] for i in kept) / max(len(kept), 1)


if __name__ == "__main__":
    sys.exit(main())

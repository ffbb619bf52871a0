"""Bytes that deduplication and decontamination read for each document, of corpora of 100, 1,000 and 10,000 shards.

    python tests/benchmarks/bytes_read.py [SHARDS ...] [STAGE ...]

Limit: 1.2 times those of the smallest corpus. All bytes are counted where files are read, those of the hidden files
between phases and of the notes of finished shards too. Each shard is a task of its own, as large shards are, but has
only four short documents: one exact duplicate, one near-duplicate, one with a paragraph that all share. So bytes that a
task reads for other shards are not hidden behind its own. Files are in memory, in /dev/shm if it exists. Takes five
minutes.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from counted_reads import counted_reads

from marin_assets.documents import Document, shard_name, write_documents
from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig, decide_near_duplicates
from marin_assets.stages.dedup.exact_documents import ExactDuplicatesConfig, exact_duplicates
from marin_assets.stages.dedup.exact_paragraphs import DuplicateParagraphsConfig, duplicate_paragraphs
from marin_assets.stages.dedup.near_duplicates import FindNearDuplicatesConfig, find_near_duplicates
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards import file_shards

LIMIT = 1.2
SHARDS = (100, 1000, 10_000)
DOCUMENTS = 4
NOTICE = "This site uses cookies to remember that you do not like them."
MEMORY = "/dev/shm"


def main(arguments: list[str]) -> int:
    sizes = [int(argument) for argument in arguments if argument.isdecimal()] or list(SHARDS)
    stages = [argument for argument in arguments if not argument.isdecimal()] or list(STAGES)
    logging.disable(logging.WARNING)
    file_shards.MAX_SMALL_GROUPS = max(sizes)
    each: dict[str, list[float]] = {}
    for shards in sizes:
        with tempfile.TemporaryDirectory(dir=MEMORY if os.path.isdir(MEMORY) else None) as folder:
            prepare(folder, shards)
            for name in stages:
                with counted_reads() as counts:
                    STAGES[name](folder)
                each.setdefault(name, []).append(sum(counts.values()) / (shards * DOCUMENTS))
                print(f"{name:22} {shards:6,} shards: {each[name][-1]:9,.0f} bytes a document", flush=True)
    missed = 0
    for name, found in each.items():
        ratios = [one / found[0] for one in found[1:]]
        missed += max(ratios) > LIMIT
        print(f"{name:22} ratio {', '.join(f'{ratio:.2f}' for ratio in ratios)} (limit {LIMIT})")
    return 1 if missed else 0


def prepare(folder: str, shards: int) -> None:
    """Write documents, and questions of which some occur in a document."""
    for i in range(shards):
        write_documents(f"{folder}/documents/{shard_name(i, shards)}", documents_of(i))
    with open(f"{folder}/questions.jsonl", "w") as file:
        for i in range(50):
            file.write(json.dumps({"id": i, "ctx": prose(i, 20), "choices": ["yes", "no"], "gold": 0}) + "\n")


def documents_of(shard: int) -> list[Document]:
    near = prose(shard // 2, 60).split()
    near[shard % 2 * 30] = "changed"
    texts = {
        "alone": prose(-1 - shard, 60),
        "equal": f"The same text in two shards, {shard // 2}.",
        "near": " ".join(near),
        "notice": f"{prose(-1_000_000 - shard, 20)}\n\n{NOTICE}",
    }
    return [Document(id=f"{shard}/{name}", text=text) for name, text in texts.items()]


def prose(seed: int, words: int) -> str:
    dice = random.Random(seed)
    return " ".join(f"w{dice.randrange(10**6):x}" for _ in range(words))


def near_duplicates(folder: str) -> None:
    found = FindNearDuplicatesConfig(documents_path=f"{folder}/documents", output_path=f"{folder}/clusters")
    find_near_duplicates(unwrap_versioned_value(found))


def decided(folder: str) -> None:
    config = DecideNearDuplicatesConfig(
        documents_path=f"{folder}/documents", clusters_path=f"{folder}/clusters", output_path=f"{folder}/near"
    )
    decide_near_duplicates(unwrap_versioned_value(config))


def exact(folder: str) -> None:
    config = ExactDuplicatesConfig(documents_path=f"{folder}/documents", output_path=f"{folder}/exact")
    exact_duplicates(unwrap_versioned_value(config))


def paragraphs(folder: str) -> None:
    config = DuplicateParagraphsConfig(documents_path=f"{folder}/documents", output_path=f"{folder}/paragraphs")
    duplicate_paragraphs(unwrap_versioned_value(config))


def contamination(folder: str) -> None:
    config = FindContaminationConfig(
        documents_path=f"{folder}/documents",
        evaluations={"questions": f"{folder}/questions.jsonl"},
        output_path=f"{folder}/contamination",
    )
    find_contamination(unwrap_versioned_value(config))


STAGES: dict[str, Callable[[str], None]] = {
    "find_near_duplicates": near_duplicates,
    "decide_near_duplicates": decided,
    "exact_duplicates": exact,
    "duplicate_paragraphs": paragraphs,
    "find_contamination": contamination,
}

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

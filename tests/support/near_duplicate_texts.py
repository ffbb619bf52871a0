"""Texts with planted near-duplicates, for the tests beside."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from marin_assets.documents import Document, read_rows, shard_name, write_documents
from marin_assets.stages.dedup.decide_near_duplicates import DecideNearDuplicatesConfig, decide_near_duplicates
from marin_assets.stages.dedup.near_duplicates import FindNearDuplicatesConfig, find_near_duplicates
from marin_assets.step.values import unwrap_versioned_value

Documents = list[Document]


def text(dice: random.Random, words: int = 200) -> str:
    return " ".join(f"w{dice.randrange(10**6):x}" for _ in range(words))


def edited(dice: random.Random, original: str, changes: int = 2) -> str:
    """A near-duplicate: each change is in five shingles. Two in 200 words leave a Jaccard similarity of 0.9."""
    words = original.split()
    for _ in range(changes):
        words[dice.randrange(len(words))] = f"changed{dice.randrange(10**6)}"
    return " ".join([*words, *["more"] * dice.randrange(3)])


def corpus(clusters: int = 20, alone: int = 60) -> tuple[Documents, list[set[str]]]:
    """Shuffled documents, and the ids of each cluster."""
    dice = random.Random(5)
    documents, planted = [], []
    for c in range(clusters):
        original = text(dice)
        copies = [original, *(edited(dice, original) for _ in range(1 + c % 4))]
        planted.append({f"c{c}-{i}" for i in range(len(copies))})
        documents += [Document(id=f"c{c}-{i}", text=copy, source=f"s{i % 3}") for i, copy in enumerate(copies)]
    documents += [Document(id=f"alone{i}", text=text(dice), source="s0") for i in range(alone)]
    dice.shuffle(documents)
    return documents, planted


def write_shards(folder: Path | str, documents: Documents, shards: int = 3, spread: bool = False) -> str:
    """In their order, or dealt out one by one."""
    size = -(-len(documents) // shards)
    for i in range(shards):
        part = documents[i::shards] if spread else documents[i * size : (i + 1) * size]
        write_documents(f"{folder}/{shard_name(i, shards)}", part)
    return str(folder)


def find(documents: str, output: Path | str, **changes: Any) -> dict[str, Any]:
    config = FindNearDuplicatesConfig(documents_path=documents, output_path=str(output), **changes)
    return find_near_duplicates(unwrap_versioned_value(config))


def decide(documents: str, clusters: Path | str, output: Path | str, **changes: Any) -> dict[str, Any]:
    config = DecideNearDuplicatesConfig(
        documents_path=documents, clusters_path=str(clusters), output_path=str(output), **changes
    )
    return decide_near_duplicates(unwrap_versioned_value(config))


def table(output: Path | str) -> list[dict[str, Any]]:
    """All rows of a folder of shards."""
    return [row for file in sorted(Path(output).glob("*.jsonl.zst")) for _, row in read_rows(str(file))]  # type: ignore[misc]


def data(output: Path | str, hidden: bool = False) -> dict[str, bytes]:
    """Name -> bytes, of what a reader of the output sees, or of the hidden files of near-duplicates too."""
    files = [*Path(output).glob("*.zst"), *(Path(output).glob(".marin/near_duplicates/**/*") if hidden else ())]
    return {str(file.relative_to(output)): file.read_bytes() for file in files if file.is_file()}

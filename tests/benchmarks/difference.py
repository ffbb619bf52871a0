"""The difference of two outputs of the data browser, against brute force: time of each request, memory, and results.

    python tests/benchmarks/difference.py [ROWS]

The outputs have ROWS rows each, a million by default, in 8 and 5 shards of other orders and formats. A twentieth of the
ids is removed, another is added; texts, verdicts and metadata change; some rows are repeated. The comparison runs in a
process of its own, in the steps of requests.

    equal       ids of each kind, and repeated ids, are those of brute force with dicts
    memory      peak of the process: at most 2 GB
    requests    the longest step: at most 12 s of CPU; its number and CPU time are printed
    page        CPU of a page of 20 changed texts behind the middle: at most 2 s

Limits are missed with an exit code of 1. Takes three minutes with a million rows.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from marin_assets.browse.rows.difference.comparison import KINDS, Comparison
from marin_assets.browse.rows.difference.inventory import Inventory
from marin_assets.browse.rows.difference.marked_text import marked_text
from marin_assets.browse.rows.sample import chosen_rows
from marin_assets.documents.rows import read_rows, write_rows
from marin_resources.storage.files import stored_files

ROWS = 1_000_000
SHARDS = {"before": 8, "after": 5}
MEMORY_BYTES, STEP_S, PAGE_S = 2 * 1024**3, 12.0, 2.0
REQUEST_S = 8.0
WORDS = ["data", "of", "a", "model", "is", "text", "and", "lines", "ü", "\n"]

Ids = dict[str, set[str]]


def main() -> int:
    if sys.argv[1:2] == ["--compare"]:
        print(json.dumps(compare(*sys.argv[2:4])))
        return 0
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        write(folder, rows)
        command = [sys.executable, __file__, "--compare", f"{folder}/before", f"{folder}/after"]
        measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        expected, repeated = brute_force(folder)
        for kind in KINDS:
            ids = set(measured["ids"][kind])
            if ids != expected[kind] or len(measured["ids"][kind]) != len(ids):
                missed.append(f"{kind}: {len(ids):,} ids, {len(expected[kind]):,} by brute force")
            print(f"{kind:10} {len(ids):10,} ids")
        if measured["repeated"] != repeated:
            missed.append(f"repeated: {measured['repeated']}, {repeated} by brute force")
    for name, limit in (("memory", MEMORY_BYTES), ("longest_step_s", STEP_S), ("page_s", PAGE_S)):
        print(f"{name:16} {measured[name]:14,.1f}   limit {limit:,.1f}")
        if measured[name] > limit:
            missed.append(name)
    print(f"{measured['steps']} requests, {measured['cpu_s']:.1f} s of CPU")
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def compare(before: str, after: str) -> dict[str, Any]:
    """Compare in the steps of requests; the measures of this process."""
    comparison = Comparison(Inventory(stored_files(before)), Inventory(stored_files(after)))
    steps: list[float] = []
    while not comparison.is_finished:
        start = time.process_time()
        comparison.advance(time.monotonic() + REQUEST_S)
        steps.append(time.process_time() - start)
    start = time.process_time()
    for places in comparison.pairs(KINDS[0], comparison.count(KINDS[0]) // 2, 20):
        texts = []
        for place, side in zip(places, (comparison.before, comparison.after), strict=True):
            assert place is not None
            [(_, row)] = chosen_rows(side.files[place[0]].path, [place[1]])
            texts.append(row["text"])  # type: ignore[index]
        assert any(piece.kind != "same" for piece in marked_text(*texts))
    page_s = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "memory": memory,
        "steps": len(steps),
        "longest_step_s": max(steps),
        "cpu_s": sum(steps),
        "page_s": page_s,
        "repeated": [comparison.repeated[False], comparison.repeated[True], comparison.repeats[True]],
        "ids": {kind: ids_of(comparison, kind) for kind in KINDS},
    }


def ids_of(comparison: Comparison, kind: str) -> list[str]:
    """The id of each pair of a kind, read where it says that its rows are."""
    pairs = comparison.pairs(kind, 0, comparison.count(kind))
    side = 0 if kind == "removed" else 1
    inventory = (comparison.before, comparison.after)[side]
    by_file: dict[int, list[int]] = {}
    for pair in pairs:
        place = pair[side]
        assert place is not None
        by_file.setdefault(place[0], []).append(place[1])
    rows = ((file, chosen_rows(inventory.files[file].path, sorted(by_file[file]))) for file in by_file)
    return [row["id"] for _, of_file in rows for _, row in of_file]  # type: ignore[index]


def write(folder: str, rows: int) -> None:
    for name, shards in SHARDS.items():
        for shard in range(shards):
            suffix = "parquet" if (name, shard) == ("after", 0) else "jsonl.zst"
            write_rows(f"{folder}/{name}/part-{shard}.{suffix}", of_shard(name, shard, shards, rows))


def of_shard(name: str, shard: int, shards: int, rows: int) -> Iterator[dict[str, Any]]:
    """The rows of a shard: those before by their number, those after backwards, with changes by the number."""
    order = range(shard, rows, shards) if name == "before" else range(rows - 1 - shard, -1, -shards)
    for number in order:
        chance = random.Random(number)
        text = " ".join(chance.choices(WORDS, k=60))
        row: dict[str, Any] = {"id": f"doc/{number}", "text": text, "keep": True, "reason": ""}
        row["metadata"], fate = {"n": number}, number % 20
        if fate == 0:
            row["id"] += "-" + name  # removed, and added
        elif fate == 1 and name == "after":
            row["text"] = text.replace("model", "sample") + " end"
        elif fate == 2 and name == "after":
            row["keep"], row["reason"] = False, "short"
        elif fate == 3 and name == "after":
            row["metadata"] = {"n": number, "language": "en"}
        yield row
        if fate == 4 and name == "after":
            yield row
        if fate == 5 and name == "after":
            yield {**row, "text": "another text of the same id"}


def brute_force(folder: str) -> tuple[Ids, list[int]]:
    """The ids of each kind, and the counts of repeated ids, with all rows in memory."""
    sides: list[dict[str, set[tuple[str, str, str]]]] = []
    repeated: list[int] = []
    for name in SHARDS:
        contents: dict[str, set[tuple[str, str, str]]] = {}
        seen: Counter[str] = Counter()
        for file in sorted(Path(folder, name).iterdir()):
            for _, row in read_rows(str(file)):
                assert isinstance(row, dict)
                metadata = json.loads(row["metadata"]) if isinstance(row["metadata"], str) else row["metadata"]
                content = (row["text"], f"{row['keep']} {row['reason']}", json.dumps(metadata, sort_keys=True))
                contents.setdefault(row["id"], set()).add(content)
                seen[row["id"]] += 1
        sides.append(contents)
        repeated += [sum(count > 1 for count in seen.values())]
        last = sum(count - 1 for count in seen.values())
    before, after = sides
    ids: Ids = {"added": set(after) - set(before), "removed": set(before) - set(after)}
    for index, kind in enumerate(("text", "verdict", "values")):
        both = set(before) & set(after)
        ids[kind] = {id for id in both if {c[index] for c in before[id]} != {c[index] for c in after[id]}}
    return ids, [*repeated, last]


if __name__ == "__main__":
    sys.exit(main())

"""Our quality filters against datatrove 0.9's: the same documents kept, and how many more a second.

    python tests/benchmarks/filters.py [DOCUMENTS] [ROUNDS]

The documents are texts of this machine's Python and spoilt ones (`sides/filters_texts.py`). datatrove runs in an
environment of its own. One process and one core each, turn by turn; medians count.

    same decision   each filter asked alone of every document, words="spacy": at least 99.9 % are kept by both or by
                   none; C4's also leave the same text. Every document that differs is printed.
    speed          the four filters in FineWeb's order on 5,000 of the documents, from text to decision: the rule of
                   `filter_documents` against datatrove's filters. Reading, writing and loading spaCy are in neither.
                   Seconds are the process's on its core, so other work on the machine is in neither either.

Limits: 10 times datatrove's speed with words="fast", 2 times with words="spacy". Exits 1 if one is missed. Takes three
minutes with 5,000 documents.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "sides"))

from filters_texts import texts

from marin_assets.documents import Document
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, decision_rule_of
from marin_assets.stages.filter.registry import filter_of_thresholds, fineweb_filters, named
from marin_assets.stages.filter.spans import complement
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.words import splitter_named
from marin_assets.step.values import unwrap_versioned_value

PACKAGES = ("datatrove[processing]==0.9.0", "spacy==3.8.18", "nltk", "numpy")
SIDES = Path(__file__).resolve().parent / "sides"
SAME = 0.999
SPEED = {"fast": 10.0, "spacy": 2.0}
TIMED = 5000
FILTERS = {
    "gopher_repetition": "gopher_repetition@datatrove",
    "gopher_quality": "gopher_quality@datatrove",
    "c4": "c4@fineweb",
    "c4_strict": "c4@datatrove",
    "fineweb": "fineweb@0.01",
}


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    documents = texts(count)
    print(f"{count} documents, {sum(map(len, documents)) / 1e6:.1f} million characters")
    with tempfile.TemporaryDirectory() as folder:
        missed = compare_decisions(documents, folder)
        missed += compare_speed(documents[:: max(1, count // TIMED)], rounds, folder)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def compare_decisions(documents: list[str], folder: str) -> list[str]:
    path, out = f"{folder}/texts.jsonl", f"{folder}/decisions.jsonl"
    write_texts(path, documents)
    run_datatrove(path, "decisions", out)
    theirs = [json.loads(line) for line in Path(out).read_text().splitlines()]
    ours = [decisions_of(text) for text in documents]
    missed = []
    for name in FILTERS:
        pairs = [(a[name], b[name]) for a, b in zip(ours, theirs, strict=True)]
        same = sum(a[0] == b[0] for a, b in pairs) / len(pairs)
        same_text = sum(a[2] == b[2] for a, b in pairs) / len(pairs)
        reasons = Counter(a[1] for a, _ in pairs if not a[0])
        print(f"{name:18} same decision {same:8.3%}, same text {same_text:8.3%}; {dict(reasons.most_common())}")
        for i, (a, b) in enumerate(pairs):
            if a[0] != b[0]:
                print(f"    document {i}: {a[1] or 'kept'} here, {b[1] or 'kept'} there")
        if same < SAME or same_text < SAME:
            missed.append(name)
    return missed


def decisions_of(text: str) -> dict[str, tuple[bool, str, str | None]]:
    measured = TextStatistics(text, splitter_named("spacy"))
    found = {}
    for name, set_name in FILTERS.items():
        thresholds = unwrap_versioned_value(named(set_name).thresholds)
        decision = filter_of_thresholds(thresholds)(measured, thresholds)
        left = "".join(text[a:b] for a, b in complement(list(decision.cut), len(text)))
        found[name] = (decision.keep, decision.reason, left if decision.cut else None)
    return found


def compare_speed(documents: list[str], rounds: int, folder: str) -> list[str]:
    path = f"{folder}/timed.jsonl"
    write_texts(path, documents)
    seconds: dict[str, list[float]] = {"fast": [], "spacy": [], "datatrove": []}
    for _ in range(rounds):
        for words in SPEED:
            seconds[words].append(run_ours(path, words))
        seconds["datatrove"].append(run_datatrove(path, "seconds"))
    theirs = statistics.median(seconds["datatrove"])
    print(f"datatrove          {len(documents) / theirs:8.0f} documents a second")
    missed = []
    for words, limit in SPEED.items():
        ratio = theirs / statistics.median(seconds[words])
        every = ", ".join(f"{b / a:.1f}" for a, b in zip(seconds[words], seconds["datatrove"], strict=True))
        speed = len(documents) / statistics.median(seconds[words])
        print(f"words={words!r:12} {speed:8.0f} documents a second, {ratio:.1f} times (limit {limit:g}; {every})")
        if ratio < limit:
            missed.append(f"speed with {words!r}")
    return missed


def write_texts(path: str, documents: list[str]) -> None:
    Path(path).write_text("".join(json.dumps(text) + "\n" for text in documents))


def run_ours(path: str, words: str) -> float:
    """Seconds of a process of its own, as `datatrove` has one: nothing is remembered from before."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    return float(run([sys.executable, __file__, "--seconds", path, words], environment))


def our_seconds(path: str, words: str) -> float:
    config = FilterDocumentsConfig(documents_path="", output_path="", filters=fineweb_filters(), words=words)
    decide = decision_rule_of(unwrap_versioned_value(config))
    decide(Document(id="warm", text="Some words. " * 100))
    documents = [
        Document(id=str(i), text=json.loads(line)) for i, line in enumerate(Path(path).read_text().splitlines())
    ]
    began = time.process_time()
    for document in documents:
        decide(document)
    return time.process_time() - began


def run_datatrove(*arguments: str) -> Any:
    return run_peer("filters_datatrove.py", PACKAGES, *arguments)


def run_peer(script: str, requirements: tuple[str, ...], *arguments: str) -> Any:
    """The last line of a script of `sides`, as JSON, run by a Python with the packages."""
    uv = Path(__file__).resolve().parents[2] / ".tools/bin/uv"
    uv_path = str(uv) if uv.exists() else shutil.which("uv")
    if uv_path is None:
        raise RuntimeError(f"uv is not at {str(uv)!r} and not on the path. Run `make init` first.")
    packages = [word for name in requirements for word in ("--with", name)]
    command = [uv_path, "run", "--isolated", "--no-project", "--python", sys.executable, *packages, "python"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MARIN_", "DAGSTER_", "PYTHON", "RAY_"))}
    return json.loads(run([*command, str(SIDES / script), *arguments], clean))


def run(command: list[str], environment: Mapping[str, str]) -> str:
    """The last line that a command prints, on one core."""
    one_core = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env={**environment, **one_core}, capture_output=True, text=True, cwd=SIDES)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--seconds"]:
        print(our_seconds(sys.argv[2], sys.argv[3]))
        sys.exit(0)
    sys.exit(main())

"""Our MinHash signatures against datatrove 0.9's, and near-duplicates found against the formula.

    python tests/benchmarks/minhash.py [ROUNDS]

    speed    1,000 documents of this machine (sources of the standard library, descriptions of its packages, pydoc's
             topics) to band files on disk: our signing against datatrove's MinhashDedupSignature, 14 bands of 8 both.
             One process and one core each, turn by turn; medians count. Starting, and loading spaCy, are in neither.
    recall   pairs of texts cut from the same documents so that they share a known part of their shingles. How many
             become candidates, against 1 - (1 - s^rows)^bands at the Jaccard similarity s of each pair, which is
             counted from sets of words, independently of the stage. 4,000 pairs: a standard error below 0.8 points.

Limits: 10 times datatrove's speed, 3 points from the formula. Exits 1 if one is missed. Takes two to three minutes.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

PACKAGES = ("datatrove[processing]==0.9.0", "spacy==3.8.18", "nltk", "numpy", "xxhash<4")
"""datatrove 0.9 hashes text, which xxhash 4 does not take."""
SIDES = Path(__file__).resolve().parent / "sides"
SPEED = 10.0
POINTS = 0.03
TIMED = 1000
MAX_CHARACTERS = 12_000
PAIRS = 4000
SHINGLES = 300
"""Of each text of a pair."""
SIMILARITIES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    documents = list(texts())
    missed = compare_speed(documents[:: len(documents) // TIMED][:TIMED], rounds) + compare_recall(documents)
    print("missed: " + ", ".join(missed) if missed else "all limits held")
    return 1 if missed else 0


def texts() -> Iterator[str]:
    library = Path(sysconfig.get_path("stdlib"))
    for file in sorted([*library.glob("*.py"), *library.glob("*/*.py")]):
        if "site-packages" not in file.parts:
            yield file.read_text(errors="replace")[:MAX_CHARACTERS]
    yield from (text for _, text in sorted(topics.items()))
    yield from sorted((one.read_text("METADATA") or "")[:MAX_CHARACTERS] for one in distributions())


def compare_speed(documents: list[str], rounds: int) -> list[str]:
    size = sum(len(text.encode()) for text in documents)
    print(f"speed: {len(documents)} documents, {size / 1e6:.1f} MB")
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/texts.jsonl"
        Path(path).write_text("".join(json.dumps(text) + "\n" for text in documents))
        for i in range(rounds):
            ours.append(run_ours(path, f"{folder}/ours{i}"))
            theirs.append(run_datatrove(path, f"{folder}/theirs{i}"))
    ratio = statistics.median(theirs) / statistics.median(ours)
    for name, seconds in (("here", ours), ("datatrove", theirs)):
        median = statistics.median(seconds)
        print(f"    {name:10} {len(documents) / median:8.0f} documents a second, {size / 1e6 / median:7.2f} MB/s")
    every = ", ".join(f"{b / a:.0f}" for a, b in zip(ours, theirs, strict=True))
    print(f"    ratio {ratio:.1f} (limit {SPEED:g}; rounds {every})")
    return [] if ratio >= SPEED else ["speed"]


def compare_recall(documents: list[str]) -> list[str]:
    from marin_assets.stages.dedup.minhash import FINEWEB, NEMO_CURATOR, ZYDA, Signer

    words = [word for text in documents for word in re.findall(r"[a-z]+", text.lower())]
    missed = []
    for name, minhash in (("FINEWEB", FINEWEB), ("NEMO_CURATOR", NEMO_CURATOR), ("ZYDA", ZYDA)):
        signer, dice = Signer(minhash), random.Random(1)
        print(f"recall: {name}, {minhash.bands} bands of {minhash.rows}, {minhash.ngram}-grams of words")
        for similarity in SIMILARITIES:
            found, expected, measured = [], [], []
            for _ in range(PAIRS):
                pair = planted(dice, words, similarity, minhash.ngram)
                jaccard = similarity_of(*pair, minhash.ngram)
                measured.append(jaccard)
                expected.append(minhash.inclusion_probability(jaccard))
                found.append(are_candidates(signer, *map(" ".join, pair)))
            rate, theory = statistics.mean(found), statistics.mean(expected)
            error = (theory * (1 - theory) / PAIRS) ** 0.5
            ok = abs(rate - theory) <= POINTS
            print(
                f"    similarity {statistics.mean(measured):.3f}: found {rate:7.2%}, formula {theory:7.2%}, "
                f"{100 * (rate - theory):+.2f} points (standard error {100 * error:.2f}){'' if ok else ' MISSED'}"
            )
            missed += [] if ok else [f"{name} at {similarity}"]
    return missed


def planted(dice: random.Random, words: list[str], similarity: float, ngram: int) -> tuple[list[str], list[str]]:
    """Two texts of SHINGLES shingles, with the same beginning."""
    shared, length = round(2 * SHINGLES * similarity / (1 + similarity)) + ngram - 1, SHINGLES + ngram - 1
    start, other = (dice.randrange(len(words) - length) for _ in range(2))
    one = words[start : start + length]
    return one, one[:shared] + words[other : other + length - shared]


def similarity_of(a: list[str], b: list[str], ngram: int) -> float:
    """Jaccard's, of the sets of n-grams."""
    one, other = ({tuple(text[i : i + ngram]) for i in range(len(text) - ngram + 1)} for text in (a, b))
    return len(one & other) / len(one | other)


def are_candidates(signer: Any, a: str, b: str) -> bool:
    import numpy as np

    one, other = signer.band_keys(np.stack([signer.signature(a), signer.signature(b)]))
    return bool((one == other).any())


def run_ours(path: str, out: str) -> float:
    """Seconds, of a process of its own, as datatrove has one."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    return float(run([sys.executable, __file__, "--seconds", path, out], environment))


def our_seconds(path: str, out: str) -> float:
    from marin_assets.documents import Document
    from marin_assets.stages.dedup.bands import write_block
    from marin_assets.stages.dedup.minhash import FINEWEB, Signer
    from marin_assets.stages.dedup.signatures import blocks_of
    from marin_resources.storage.files import open_atomic

    lines = Path(path).read_text().splitlines()
    documents = [Document(id=str(i), text=json.loads(line)) for i, line in enumerate(lines)]
    signer = Signer(FINEWEB)
    signer.signature("Some words. " * 100)
    began = time.perf_counter()
    with open_atomic(out) as file:
        for keys, rows in blocks_of(documents, signer, Counter()):
            write_block(file, keys, rows, FINEWEB)
    return time.perf_counter() - began


def run_datatrove(*arguments: str) -> float:
    uv = Path(__file__).resolve().parents[2] / ".tools/bin/uv"
    uv_path = str(uv) if uv.exists() else shutil.which("uv")
    if uv_path is None:
        raise RuntimeError(f"uv is not at {str(uv)!r} and not on the path. Run `make init` first.")
    packages = [word for name in PACKAGES for word in ("--with", name)]
    command = [uv_path, "run", "--isolated", "--no-project", "--python", sys.executable, *packages, "python"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MARIN_", "DAGSTER_", "PYTHON", "RAY_"))}
    return float(run([*command, str(SIDES / "minhash_datatrove.py"), *arguments], clean))


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

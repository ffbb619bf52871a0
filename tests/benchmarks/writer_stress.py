"""Processes compete to write the same outputs, while they are killed, paused, on wrong clocks and without answers.

    python tests/benchmarks/writer_stress.py [STORES] [SECONDS] [SEED] [PROCESSES]

STORES: of disk,gcs,s3, with commas between. Prints what happened on each, and each violation; exits 1 if there is one,
or if no late writer tried to publish, for then nothing was proved. What must hold is in
`tests/support/one_writer/decision.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "support"
sys.path.insert(0, str(TESTS))

import object_stores  # noqa: E402  (it stands in TESTS)

ROWS = {
    "claims": "claimed",
    "takeovers": "takeovers",
    "late publishes rejected": "late publishes rejected",
    "stopped themselves": "stopped itself",
    "crashes": "crashes",
    "pauses": "paused",
    "lost responses": "answer lost",
    "outputs": "outputs",
    "computed more than once": "computed more than once",
    "late writes refused": "late write found",
    "replaced late, unpublished": "replaced late, before publication",
    "replaced late, published": "replaced late, after publication",
}


FAULT_PROBABILITY = 0.002
"""Of each of the four kinds. The client tries again after a second or more: then a lease of one second is lost."""
MOST_FAULTS = 10**6


def main() -> int:
    given = [*sys.argv[1:], *["disk,gcs,s3", "60", "1", "8"][len(sys.argv) - 1 :]]
    stores, (seconds, seed, processes) = given[0].split(","), given[1:4]
    print(f"{seconds} s on each store, seed {seed}, {processes} processes")
    decisions = {store: compete(store, float(seconds), int(seed), int(processes)) for store in stores}
    print(f"{'':28}" + "".join(f"{store:>8}" for store in stores))
    for title, count in ROWS.items():
        print(f"{title:28}" + "".join(f"{decisions[store]['counts'].get(count, 0):8}" for store in stores))
    print(f"{'violations':28}" + "".join(f"{len(decisions[store]['violations']):8}" for store in stores))
    for store in stores:
        for sentence in decisions[store]["violations"]:
            print(f"{store}: {sentence}")
    proved = all(decision["counts"].get("late publishes rejected", 0) for decision in decisions.values())
    return 0 if proved and not any(decision["violations"] for decision in decisions.values()) else 1


def compete(store: str, seconds: float, seed: int, processes: int) -> dict[str, Any]:
    """What came of it on a fresh prefix of that store."""
    if store == "gcs":
        return compete_on_gcs(seconds, seed, processes)
    with tempfile.TemporaryDirectory() as folder:
        prefix = f"{folder}/prefix" if store == "disk" else object_stores.s3_prefix()
        return run(prefix, seconds, seed, processes)


def compete_on_gcs(seconds: float, seed: int, processes: int) -> dict[str, Any]:
    """Its server loses answers itself: before or after the effect of a request, by an error or by hanging up."""
    bucket = object_stores.gcs_bucket()
    for number, lose in enumerate((bucket.fail, bucket.drop)):
        for after in (False, True):
            lose(after=after, times=MOST_FAULTS, probability=FAULT_PROBABILITY, seed=seed + 2 * number + after)
    decision = run(bucket.prefix, seconds, seed, processes)
    decision["counts"]["answer lost"] = 4 * MOST_FAULTS - bucket.strikes_left()
    bucket.forget()
    return decision


def run(prefix: str, seconds: float, seed: int, processes: int) -> dict[str, Any]:
    asked = [prefix, str(seconds), str(seed), str(processes)]
    ran = subprocess.run(
        [sys.executable, "-m", "one_writer", *asked],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parents[1])])},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"The competition on {prefix!r} ended with code {ran.returncode}: {ran.stderr[-3000:]}")
    return json.loads(ran.stdout)


if __name__ == "__main__":
    try:
        code = main()
    finally:
        object_stores.stop_all()
    sys.exit(code)

"""Many processes compete to write the same outputs, and much goes wrong: each output has one writer, and is whole.

The short form of `tests/benchmarks/writer_stress.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import writer_stress

NEEDED = ("late publishes rejected", "takeovers", "crashes")


@pytest.mark.long
@pytest.mark.parametrize(("store", "processes"), [("disk", 8), ("gcs", 8), ("s3", 4)])
def test_every_output_is_published_once_by_the_latest_of_its_writers(store: str, processes: int) -> None:
    for seed in range(5, 11):
        verdict = writer_stress.compete(store, seconds=4, seed=seed, processes=processes)
        happened = verdict["counts"]
        assert verdict["violations"] == []
        assert happened["published"] <= happened["outputs"]
        if all(happened.get(event) for event in NEEDED):
            return
    pytest.fail(f"of {NEEDED} not all happened in any round, so nothing was proved: {happened}")

"""Many processes compete to write the same outputs, and much goes wrong: each output has one writer, and is whole.

The short form of `tests/benchmarks/writer_stress.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import writer_stress


@pytest.mark.parametrize(
    ("store", "processes"),
    [pytest.param("disk", 8, marks=pytest.mark.long), ("gcs", 8), pytest.param("s3", 4, marks=pytest.mark.long)],
)
def test_every_output_is_published_once_by_the_latest_of_its_writers(store: str, processes: int) -> None:
    verdict = writer_stress.compete(store, seconds=4, seed=5, processes=processes)
    assert verdict["violations"] == []
    happened = verdict["counts"]
    assert happened["late publishes rejected"] > 0, happened
    assert happened["takeovers"] > 0, happened
    assert happened["crashes"] > 0, happened
    assert happened["published"] <= happened["outputs"]

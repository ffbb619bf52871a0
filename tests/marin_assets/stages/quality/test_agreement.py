"""Agreement of predictions with what is true, with its error."""

from __future__ import annotations

import random
import statistics

import pytest

from marin_assets.stages.quality.agreement import agreement, scores, wilson


def test_scores_match_the_textbook() -> None:
    result = scores([("a", "a")] * 6 + [("a", "b")] * 2 + [("b", "b")] * 2)
    assert result["accuracy"] == 0.8
    assert result["majority_share"] == 0.8
    assert (result["precision_b"], result["recall_b"]) == (0.5, 1.0)
    assert (result["precision_a"], result["recall_a"]) == (1.0, 0.75)
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)  # as statsmodels has it
    assert wilson(10, 10)[1] == pytest.approx(1)


def test_the_error_of_numbers_is_that_of_the_standard_library() -> None:
    dice = random.Random(3)
    true = [dice.gauss(2, 1) for _ in range(28)]
    pairs = [(number, number + dice.gauss(0.5, 1)) for number in true]
    result = agreement(pairs)
    correlation = statistics.correlation(true, [predicted for _, predicted in pairs])
    assert result["correlation"] == pytest.approx(correlation)
    assert result["deviation"] == pytest.approx(statistics.pstdev(true))
    assert result["mean_squared_error"] == pytest.approx(statistics.fmean((t - p) ** 2 for t, p in pairs))
    assert result["mean_error"] == pytest.approx(statistics.fmean(abs(t - p) for t, p in pairs))
    assert result["correlation_lower95"] < correlation < result["correlation_upper95"]


def test_the_bounds_of_a_correlation_cover_it_19_times_in_20() -> None:
    dice, covered = random.Random(5), 0
    for _ in range(400):
        true = [dice.gauss(0, 1) for _ in range(40)]
        result = agreement([(number, number + dice.gauss(0, 1)) for number in true])
        covered += result["correlation_lower95"] <= 0.5**0.5 <= result["correlation_upper95"]
    assert 0.92 <= covered / 400 <= 0.98


@pytest.mark.parametrize("pairs", [[(1.0, 2.0)], [(1.0, 1.0)] * 9, [(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (4.0, 0.0)]])
def test_a_constant_side_has_no_correlation(pairs: list[tuple[float, float]]) -> None:
    result = agreement(pairs)
    assert result["correlation"] == 0
    assert result["correlation_lower95"] <= 0 <= result["correlation_upper95"]

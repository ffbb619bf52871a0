"""Agreement of predictions with what is true, with its error."""

from __future__ import annotations

import random
import statistics

import pytest

from marin_assets.stages.quality.agreement import agreement, scores, wilson
from marin_assets.stages.quality.agreement_page import Judged, page_of_agreement


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


def test_always_answering_the_majority_has_no_recall_of_the_rarer_label() -> None:
    lazy = scores([("no", "no")] * 95 + [("yes", "no")] * 5)
    assert lazy["accuracy"] == 0.95
    assert (lazy["rare_recall"], lazy["rare_precision"], lazy["rare_precision_lower95"]) == (0, 0, 0)
    assert lazy["rare_recall_upper95"] == pytest.approx(0.434, abs=1e-3)
    able = scores([("no", "no")] * 94 + [("no", "yes")] + [("yes", "yes")] * 4 + [("yes", "no")])
    assert (able["rare_recall"], able["rare_precision"]) == (0.8, 0.8)
    assert able["rare_recall"] == able["recall_yes"]
    assert able["recall_yes_lower95"] == pytest.approx(0.376, abs=1e-3)


def test_the_page_has_each_cell_with_examples_wrong_ones_first_and_inert() -> None:
    judged = [Judged("d1", "<script>alert(1)</script>", "no", "yes"), Judged("d2", "x" * 2000, "yes", "yes")]
    judged += [Judged(f"e{i}", f"text {i}", "no", "no") for i in range(30)]
    page = page_of_agreement(judged).decode()
    assert '<td class="right">30</td><td class="wrong">1</td>' in page
    assert '<td class="wrong">0</td><td class="right">1</td>' in page
    assert page.index("no, predicted yes") < page.index("no, predicted no") < page.index("yes, predicted yes")
    assert "&lt;script&gt;alert(1)" in page
    assert "the first 10 of 30 examples" in page
    assert "x" * 1201 not in page

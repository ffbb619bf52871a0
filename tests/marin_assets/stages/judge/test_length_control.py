"""The length-controlled win rate of drawn preferences."""

from __future__ import annotations

import numpy as np
import pytest

from marin_assets.stages.judge.length_control import length_controlled
from marin_assets.stages.judge.win_rates import mean_scores


def share(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logits))


@pytest.mark.parametrize(("model", "length"), [(0.0, 2.0), (0.7, 1.0), (-0.5, 0.0)])
def test_it_is_the_rate_that_was_drawn_and_its_error_covers_it(model: float, length: float) -> None:
    drawn, truth, count = np.random.default_rng(5), float(share(np.array(model))), 150
    estimates = []
    for _ in range(300):
        longer = drawn.normal(150, 300, count)
        wins = drawn.random(count) < share(model + length * np.tanh(longer / 300))
        estimate = length_controlled(wins.astype(float).tolist(), longer.tolist())
        assert estimate is not None
        estimates.append(estimate)
    rates, errors = np.array(estimates).T
    assert rates.mean() == pytest.approx(truth, abs=0.01)
    assert errors.mean() == pytest.approx(rates.std(), rel=0.12)
    assert np.mean(np.abs(rates - truth) < 1.96 * errors) == pytest.approx(0.95, abs=0.035)


def test_the_error_of_a_win_rate_covers_the_truth() -> None:
    drawn = np.random.default_rng(1)
    covered = []
    for _ in range(1000):
        scores = mean_scores("rate", drawn.beta(2, 1, 80).tolist())
        covered.append(abs(scores["rate"] - 2 / 3) < 1.96 * scores["rate_stderr"])
    assert np.mean(covered) == pytest.approx(0.95, abs=0.025)


def test_turns_of_one_question_are_one_group() -> None:
    drawn = np.random.default_rng(2)
    covered = []
    for _ in range(1000):
        values = np.repeat(drawn.normal(0, 1, 60), 2) + drawn.normal(0, 0.2, 120)
        scores = mean_scores("grade", values.tolist(), [str(place // 2) for place in range(120)])
        covered.append(abs(scores["grade"]) < 1.96 * scores["grade_stderr"])
    assert np.mean(covered) == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize(("count", "off"), [(50, 0.06), (400, 0.035)])
def test_a_judge_of_length_alone_is_brought_to_about_a_half(count: int, off: float) -> None:
    """The prior leaves a part: the mean of many draws is 0.536 of 50 judgements, and 0.521 of 200."""
    drawn, rates, raw = np.random.default_rng(count), [], []
    for _ in range(200):
        longer = drawn.normal(100, 200, count).round()
        wins = ((longer > 0) + 0.5 * (longer == 0)).tolist()
        estimate = length_controlled(wins, longer.tolist())
        assert estimate is not None
        rates.append(estimate[0])
        raw.append(np.mean(wins))
    assert np.mean(raw) > 0.68
    assert 0.49 < np.mean(rates) < 0.5 + off


def test_difficulties_take_part() -> None:
    drawn = np.random.default_rng(4)
    difficulty, longer = drawn.normal(0, 2, 500), drawn.normal(0, 1, 500)
    wins = share(0.4 + difficulty + np.tanh(longer)).tolist()
    with_it, without = (length_controlled(wins, longer.tolist(), of) for of in (difficulty.tolist(), None))
    assert with_it is not None
    assert without is not None
    assert with_it[0] == pytest.approx(float(share(0.4 + difficulty).mean()), abs=0.01)


def test_lengths_that_show_no_effect() -> None:
    assert length_controlled([1.0, 0.0, 0.5], [0.0, 0.0, 0.0]) == (pytest.approx(0.5), pytest.approx(0.29, abs=0.1))
    assert length_controlled([1.0, 0.0], [7.0, 7.0]) is None
    assert length_controlled([1.0], [7.0]) is None

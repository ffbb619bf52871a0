"""Laws of a loss by compute: exact data gives the law, few points give none, and intervals hold what they promise."""

from __future__ import annotations

import math
import random

import pytest

from marin_assets.stages.report.speedruns.power_law import (
    Baseline,
    PowerLawError,
    effective_speedup,
    fit_baseline,
    fit_law,
    forecast,
    speedup_of,
)

FLOPS = [1e18 * 3**power for power in range(6)]


def law(a: float, b: float, c: float) -> list[float]:
    return [a * flops**-b + c for flops in FLOPS]


@pytest.mark.parametrize(("a", "b", "c"), [(300.0, 0.153, 0.7), (50.0, 0.1, 0.0), (1e5, 0.3, 1.69)])
def test_exact_losses_give_the_law(a: float, b: float, c: float) -> None:
    fitted = fit_law(FLOPS, law(a, b, c))
    assert fitted.b == pytest.approx(b, rel=1e-4)
    assert fitted.c == pytest.approx(c, abs=1e-4)
    assert fitted.loss(1e22) == pytest.approx(a * 1e22**-b + c, rel=1e-5)
    assert not fitted.is_at_a_bound
    pinned = fit_law(FLOPS, law(a, b, c), floor=c)
    assert (pinned.b, pinned.c) == (pytest.approx(b, rel=1e-6), c)


def test_losses_that_do_not_fall_give_a_law_at_its_bound() -> None:
    assert fit_law(FLOPS, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]).a == pytest.approx(0.0)


def test_a_forecast_has_five_points_and_the_range_without_one_each() -> None:
    losses = law(300.0, 0.153, 0.7)
    made = forecast(FLOPS, losses, 1e22)
    assert made.low == pytest.approx(made.high, rel=1e-4)
    losses[-1] *= 1.01
    noisy = forecast(FLOPS, losses, 1e22)
    assert noisy.low < noisy.loss < noisy.high
    assert noisy.low == pytest.approx(made.loss, rel=1e-4), "the law without the wrong point"
    with pytest.raises(PowerLawError, match="A forecast has 4 points, expected 5 or more"):
        forecast(FLOPS[:4], losses[:4], 1e22)


def test_the_effective_speedup_is_the_identity() -> None:
    a, alpha, floor = 95.18, 0.0942, 1.6
    for small, factor in ((1e18, 1.5), (3e19, 40.0), (1e21, 1.0)):
        worse, better = (floor + a * flops**-alpha for flops in (small, small * factor))
        assert math.isclose(effective_speedup(worse, better, floor, alpha), factor, rel_tol=1e-12)
    assert effective_speedup(2.0, 2.0, 1.6, 0.1) == 1.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((2.0, 1.6, 1.6, 0.1), "are not both above the floor 1.6"),
        ((2.0, math.nan, 1.6, 0.1), "are not both above the floor"),
        ((2.0, 1.9, 1.6, 0.0), "The exponent is 0.0, expected a finite number above 0."),
    ],
)
def test_a_speedup_without_meaning_is_a_sentence(arguments: tuple[float, ...], sentence: str) -> None:
    with pytest.raises(PowerLawError, match=sentence):
        effective_speedup(*arguments)


def test_a_recipe_that_needs_half_the_compute_has_a_speedup_of_two() -> None:
    baseline = fit_baseline(FLOPS, law(300.0, 0.153, 0.7), floor=0.7)
    assert baseline.alpha == pytest.approx(0.153, rel=1e-9)
    speedup = speedup_of(1e19, 300.0 * 2e19**-0.153 + 0.7, baseline)
    assert speedup.value == pytest.approx(2.0, rel=1e-9)
    assert (speedup.low, speedup.high) == (pytest.approx(2.0, rel=1e-6), pytest.approx(2.0, rel=1e-6))
    assert speedup.is_within
    assert not speedup_of(1e22, 0.8, baseline).is_within


def test_the_interval_holds_a_run_of_the_baseline_itself_in_nine_of_ten() -> None:
    """By n - 2 degrees: with the normal distribution it would hold 82 of 100 for these five sizes."""
    chance, flops, inside = random.Random(5), FLOPS[:5], 0
    for _ in range(1000):
        heights = [
            math.exp(math.log(300.0) - 0.153 * math.log(c) + chance.gauss(0, 0.01)) + 0.7 for c in [*flops, 5e18]
        ]
        speedup = speedup_of(5e18, heights[-1], fit_baseline(flops, heights[:-1], 0.7))
        inside += speedup.low <= 1 <= speedup.high
    assert 875 <= inside <= 925


@pytest.mark.parametrize(
    ("flops", "losses", "sentence"),
    [
        ([1e18, 2e18], [1.0, 0.9], "2 points of different FLOPs, expected 3 or more"),
        ([1e18, 1e18, 1e18], [1.0, 0.9, 0.8], "1 points of different FLOPs"),
        ([1e18, 2e18, 3e18], [1.0, 0.9, 0.7], "The smallest loss is 0.7, which is not above the floor 0.7"),
        ([1e18, 2e18, 3e18], [1.0, 1.1, 1.2], "do not fall with its compute"),
        ([1e18, 2e18, math.nan], [1.0, 0.9, 0.8], "expected finite ones above 0"),
    ],
)
def test_a_baseline_without_a_line_is_a_sentence(flops: list[float], losses: list[float], sentence: str) -> None:
    with pytest.raises(PowerLawError, match=sentence):
        fit_baseline(flops, losses, 0.7)


def test_the_interval_grows_away_from_the_sizes_of_the_baseline() -> None:
    losses = [loss * (1 + 0.002 * (-1) ** place) for place, loss in enumerate(law(300.0, 0.153, 0.7))]
    baseline: Baseline = fit_baseline(FLOPS, losses, 0.7)
    near, far = (speedup_of(flops, baseline.loss(flops), baseline) for flops in (1e19, 1e23))
    assert near.value == pytest.approx(1.0)
    assert 1 < near.high < far.high

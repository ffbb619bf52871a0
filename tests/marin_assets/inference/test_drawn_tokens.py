"""Tokens are drawn among the likeliest, as top_k and top_p say."""

from __future__ import annotations

import numpy as np
import pytest

from marin_assets.inference.decoder import choose

LIKELIHOODS = np.array([0.1, 0.4, 0.05, 0.25, 0.2])
LOGITS = np.log(LIKELIHOODS)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, {0, 1, 2, 3, 4}),
        ({"top_k": 1}, {1}),
        ({"top_k": 3}, {1, 3, 4}),
        ({"top_k": 100}, {0, 1, 2, 3, 4}),
        ({"top_k": -1, "top_p": 1.0}, {0, 1, 2, 3, 4}),
        ({"top_p": 1e-9}, {1}),
        ({"top_p": 0.6}, {1, 3}),
        ({"top_p": 0.7}, {1, 3, 4}),
        ({"top_k": 2, "top_p": 0.6}, {1}),
        ({"top_k": 2, "top_p": 0.7}, {1, 3}),
    ],
)
def test_the_drawn_tokens_are_the_kept_ones_in_proportion_to_their_likelihoods(
    settings: dict[str, float], kept: set[int]
) -> None:
    random = np.random.default_rng(1)
    counts = np.bincount([choose(LOGITS, 1.0, random, **settings) for _ in range(4000)], minlength=5)
    expected = np.where(np.isin(np.arange(5), list(kept)), LIKELIHOODS, 0)
    assert set(np.flatnonzero(counts)) == kept
    assert counts / 4000 == pytest.approx(expected / expected.sum(), abs=0.03)


def test_settings_that_leave_out_no_token_change_no_draw() -> None:
    draws = [
        [choose(LOGITS, 0.7, random, **settings) for _ in range(100)]
        for settings in ({}, {"top_p": 1.0, "top_k": 0})
        for random in [np.random.default_rng(3)]
    ]
    assert draws[0] == draws[1]

"""Each objective is what a few lines of numpy say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marin_assets.stages.train.rl.batch import advantages_of
from marin_assets.stages.train.rl.objective import CORRECTIONS, KINDS, KL_KINDS, Objective
from marin_assets.step.values import unwrap_versioned_value

ROWS, POSITIONS, MAX_TOKENS = 6, 9, 8


def drawn_arrays() -> dict[str, Any]:
    draw = np.random.default_rng(0)
    mask = (draw.random((ROWS, POSITIONS)) < 0.6).astype(np.float32)
    mask[2] = 0  # a rollout that is not used
    logprobs, reference, drawn = (np.log(draw.uniform(0.05, 0.95, (ROWS, POSITIONS))) for _ in range(3))
    return {
        "logprobs": logprobs.astype(np.float32),
        "drawn": drawn.astype(np.float32),
        "reference": reference.astype(np.float32),
        "mask": mask,
        "advantages": draw.normal(size=ROWS).astype(np.float32),
    }


def in_numpy(o: Objective, a: dict[str, Any]) -> tuple[float, np.ndarray]:
    """The loss, and its gradient by the log-probabilities."""
    logp, m, A = a["logprobs"].astype(float), a["mask"].astype(float), a["advantages"][:, None].astype(float)
    moved = (logp - a["drawn"]) * m
    r, lengths = np.exp(moved), m.sum(1, keepdims=True)
    rows = (lengths > 0).sum()
    w = {"grpo": m / np.maximum(lengths, 1) / rows, "dr_grpo": m / (rows * MAX_TOKENS)}.get(o.kind, m / m.sum())
    if o.correction == "truncate":
        gain, slope = logp * A * np.minimum(r, o.most_ratio), A * np.minimum(r, o.most_ratio)
    elif o.correction == "mask":
        near = np.abs(np.exp(logp) - np.exp(a["drawn"])) <= o.most_moved
        gain, slope = logp * A * r * near, A * r * near
    elif o.correction == "none":
        gain, slope = logp * A, A + 0 * r
    elif o.correction == "clip":
        clipped = np.clip(r, 1 - o.clip_low, 1 + o.clip_high) * A
        gain, slope = np.minimum(r * A, clipped), np.where(r * A <= clipped, r * A, 0)
    else:
        s = np.exp(moved.sum(1, keepdims=True) / np.maximum(lengths, 1)) + 0 * m
        clipped = np.clip(s, 1 - o.clip_low, 1 + o.clip_high) * A
        gain = np.minimum(s * A, clipped)
        held = np.where(s * A <= clipped, s * A, 0)
        slope = (w * held).sum(1, keepdims=True) / np.maximum(lengths, 1) / np.where(w > 0, w, 1)
    k1 = (logp - a["reference"]) * m
    kl = {"k1": k1, "k2": k1**2 / 2, "k3": np.exp(-k1) - 1 + k1}[o.kl]
    kl_slope = {"k1": 1 + 0 * k1, "k2": k1, "k3": 1 - np.exp(-k1)}[o.kl]
    return (w * (o.kl_weight * kl - gain)).sum(), w * (o.kl_weight * kl_slope - slope)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradient_are_those_of_a_few_lines_of_numpy(kind: str, correction: str) -> None:
    import jax

    from marin_assets.stages.train.rl.trainer.loss import objective_loss

    arrays = drawn_arrays()
    for kl in KL_KINDS:
        objective = unwrap_versioned_value(Objective(kind=kind, correction=correction, kl=kl, kl_weight=0.3))

        def loss(logprobs: Any, objective: Objective = objective) -> Any:
            return objective_loss(objective, **{**arrays, "logprobs": logprobs}, max_tokens=MAX_TOKENS)[0]

        value, gradient = jax.value_and_grad(loss)(arrays["logprobs"])
        expected, slope = in_numpy(objective, arrays)
        assert float(value) == pytest.approx(expected, abs=1e-5)
        np.testing.assert_allclose(np.asarray(gradient), slope, atol=1e-5)


def test_advantages_are_those_of_the_papers() -> None:
    rewards = [[1.0, 0.0, 0.0, 2.0], [3.0, 3.0]]
    for kind, expected in {
        "rloo": [[1 - 2 / 3, -1.0, -1.0, 2 - 1 / 3], [0.0, 0.0]],
        "dr_grpo": [[0.25, -0.75, -0.75, 1.25], [0.0, 0.0]],
        "grpo": [[x / (np.std(rewards[0]) + 1e-4) for x in (0.25, -0.75, -0.75, 1.25)], [0.0, 0.0]],
        "reinforce": [[-0.5, -1.5, -1.5, 0.5], [1.5, 1.5]],
    }.items():
        got = advantages_of(kind, rewards)
        assert np.allclose(got[0], expected[0], atol=1e-5), kind
        assert np.allclose(got[1], expected[1], atol=1e-5), kind
    assert advantages_of("dapo", rewards) == advantages_of("grpo", rewards)


def test_log_probabilities_and_entropy_are_those_of_the_whole_softmax(base_path: str) -> None:
    from marin_assets.inference.jax_model import hidden_of, load_model, logits_of
    from marin_assets.stages.train.rl.trainer.loss import token_logprobs

    model, _ = load_model(base_path)
    tokens = np.random.default_rng(1).integers(3, 500, (2, 50)).astype(np.int32)
    logprobs, entropies = (np.asarray(each) for each in token_logprobs(model, tokens, 0.7))
    logits = np.asarray(logits_of(model, hidden_of(model, tokens))).astype(np.float64) / 0.7
    whole = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = np.take_along_axis(whole[:, :-1], tokens[:, 1:, None], -1)[..., 0]
    np.testing.assert_allclose(logprobs[:, :-1], expected, atol=1e-5)
    np.testing.assert_allclose(entropies, -(np.exp(whole) * whole).sum(-1), atol=1e-4)

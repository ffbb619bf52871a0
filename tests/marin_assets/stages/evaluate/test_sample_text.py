"""Text that a model goes on with: by itself, and from the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lm_eval.api.instance import Instance

from marin_assets.cli.main import main
from marin_assets.inference.jax_model import ModelError, load_model
from marin_assets.stages.evaluate.models.jax_lm import JaxLM
from marin_assets.stages.evaluate.sample_text import sample_text

WINDOW = 64
PROMPT = "The list of"
pytestmark = pytest.mark.long  # as the other tests that compile a model


@pytest.fixture(scope="module")
def loaded(model_path: str) -> tuple[Any, Any]:
    return load_model(model_path)


@pytest.fixture(scope="module")
def go_on(loaded: tuple[Any, Any]) -> Callable[..., str]:
    return lambda prompt, **options: "".join(sample_text(*loaded, prompt, **options))


def test_at_temperature_0_it_is_the_greedy_text_of_lm_eval(loaded: tuple[Any, Any], go_on: Callable[..., str]) -> None:
    lm = JaxLM(*loaded, batch_size=1)
    settings = {"until": [], "max_gen_toks": 20, "do_sample": False}
    request = Instance(request_type="generate_until", doc={}, arguments=(PROMPT, settings), idx=0)
    [expected] = lm.generate_until([request])
    assert expected
    assert go_on(PROMPT, max_tokens=20, temperature=0) == expected


def test_a_seed_is_a_text(go_on: Callable[..., str]) -> None:
    first, again, other = (go_on(PROMPT, max_tokens=20, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_text_may_be_longer_than_the_window_and_empty(go_on: Callable[..., str]) -> None:
    assert go_on(PROMPT * 40, max_tokens=2 * WINDOW)
    assert isinstance(go_on("", max_tokens=3), str)


@pytest.mark.parametrize("options", [{"temperature": -1}, {"max_tokens": 0}])
def test_what_cannot_be_sampled_is_refused(go_on: Callable[..., str], options: dict[str, float]) -> None:
    with pytest.raises(ModelError, match="expected a temperature of at least 0 and at least one token"):
        go_on(PROMPT, **options)


def test_the_command_prints_the_prompt_and_what_follows(
    model_path: str, go_on: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", PROMPT, "--model", model_path, "--max-tokens", "10", "--seed", "3"]) == 0
    printed = capsys.readouterr()
    assert printed.out == PROMPT + go_on(PROMPT, max_tokens=10, seed=3) + "\n"
    assert printed.err == f"model: {model_path}\n"

"""`marin generate` without a model to talk to. tests/marin_assets/stages/evaluate/test_sample_text.py has one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from location import Location

Marin = Callable[..., tuple[int, str, str]]


def test_without_a_complete_model_the_sentence_says_how_to_get_one(made: Location, marin: Marin) -> None:
    code, out, err = marin("generate", "def ")
    assert (code, out) == (2, "")
    assert err.startswith("marin generate: none of the steps of the experiments has a complete model at ")
    code, _, err = marin("generate", "def ", "--model", "toy/model")
    assert (code, "none of the steps selected by 'toy/model' has a complete model" in err) == (2, True)


def test_a_model_that_is_none_is_named(marin: Marin, prefix: Path, tmp_path: Path) -> None:
    code, _, err = marin("generate", "def ", "--model", str(tmp_path))
    assert code == 2
    assert err.startswith(f"marin generate: --model is {str(tmp_path)!r}, where no config.json is, expected a step")
    code, _, err = marin("generate", "def ", "--model", "chekpoints")
    assert (code, "'chekpoints' finds none of the steps" in err) == (2, True)


@pytest.mark.parametrize("option", ["--max-tokens", "--temperature", "--seed"])
def test_an_option_that_is_no_number_is_one_sentence(marin: Marin, option: str) -> None:
    code, _, err = marin("generate", "def ", option, "many")
    assert (code, err.count("\n")) == (2, 1)

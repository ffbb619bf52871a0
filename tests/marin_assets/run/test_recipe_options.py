"""A recipe takes the place of its data off the command line; executor_main gets the rest."""

from __future__ import annotations

import sys

import pytest

from marin_assets import Step
from marin_assets.experiments.two_steps import NumbersConfig, make_numbers
from marin_assets.run.recipe_options import take_source_option


def build(source: str | None) -> list[Step]:
    if source == "wrong":
        raise ValueError("There is nothing at 'wrong'.")
    return [Step(name=f"raw/{source or 'example'}", fn=make_numbers, config=NumbersConfig())]


@pytest.mark.parametrize(
    ("arguments", "name", "rest"),
    [
        ([], "raw/example", []),
        (["--crawl", "pages"], "raw/pages", []),
        (["--dry-run", "--crawl=pages", "--prefix", "out"], "raw/pages", ["--dry-run", "--prefix", "out"]),
    ],
)
def test_the_option_is_taken_and_the_rest_is_left(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], name: str, rest: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["recipe.py", *arguments])
    assert [step.name for step in take_source_option(build, "--crawl", None)] == [name]
    assert sys.argv == ["recipe.py", *rest]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--crawl", ""], "--crawl is '', expected a path or an address"),
        (["--crawl"], "argument --crawl: expected one argument"),
        (["--crawl", "wrong"], "There is nothing at 'wrong'."),
    ],
)
def test_a_mistake_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["recipe.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        take_source_option(build, "--crawl", None)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err

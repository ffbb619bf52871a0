"""`marin --help`, and what a misspelt verb is told."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from marin_assets.cli.verb_groups import DESCRIPTION_CHARACTERS, GROUPS, VERB_CHARACTERS, VERBS

Marin = Callable[..., tuple[int, str, str]]


def test_the_help_fits_one_screen_and_has_every_verb_in_its_group(marin: Marin) -> None:
    code, out, _ = marin("--help")
    lines = out.splitlines()
    assert (code, len(lines) <= 24, max(map(len, lines)) <= 80) == (0, True, True), out
    shown = {group: lines.index(group) for group in GROUPS}
    assert list(shown.values()) == sorted(shown.values())
    for group, verbs in GROUPS.items():
        of_group = out.partition(f"\n{group}\n")[2]
        for verb, description in verbs.items():
            assert len(verb) <= VERB_CHARACTERS
            assert len(description) <= DESCRIPTION_CHARACTERS
            assert f"{verb:{VERB_CHARACTERS}} {description}" in of_group


def test_every_verb_is_a_module_of_its_name() -> None:
    for verb in VERBS:
        module = importlib.import_module(f"marin_assets.cli.verbs.{verb}")
        assert hasattr(module, "VERBS") or callable(module.run)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["materialise"], "marin: got 'materialise' as the verb, did you mean 'materialize'? See 'marin --help'.\n"),
        (
            ["cluster", "job"],
            "marin cluster: got 'job' as the verb, did you mean 'jobs'? See 'marin cluster --help'.\n",
        ),
    ],
)
def test_a_misspelt_verb_is_told_the_one_that_was_meant(marin: Marin, arguments: list[str], sentence: str) -> None:
    assert marin(*arguments) == (2, "", sentence)


def test_a_word_unlike_any_verb_is_told_all_of_them(marin: Marin) -> None:
    code, out, err = marin("instance", "zzz")
    assert (code, out) == (2, "")
    assert err.startswith("marin instance: got 'zzz' as the verb, expected 'prune'")

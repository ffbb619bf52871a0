"""Each verb, also those of `marin cluster` and `marin instance`: wrong words are one sentence and exit code 2."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import pytest

from marin_assets.cli.parsers import commands, whole_parser

Marin = Callable[..., tuple[int, str, str]]
COMMANDS = [pytest.param(words, id="-".join(words)) for words in commands()]
GROUPS = sorted({words[0] for words in commands() if len(words) > 1})
NOTHING = "no-such-word"


def parser_of(words: tuple[str, ...]) -> argparse.ArgumentParser:
    parser = whole_parser()
    for word in words:
        [below] = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        parser = below.choices[word]
    return parser


def words_of(parser: argparse.ArgumentParser) -> list[str]:
    """The positional words of a command, with choices that exist and names that do not."""
    found = []
    for action in parser._actions:
        if not action.option_strings:
            found.append(str(next(iter(action.choices))) if action.choices else NOTHING)
    return found


@pytest.mark.parametrize("words", COMMANDS)
def test_an_option_that_it_does_not_have_is_one_sentence(experiment: str, marin: Marin, words: tuple[str, ...]) -> None:
    code, out, err = marin(*words, *words_of(parser_of(words)), "--no-such-option")
    command = " ".join(["marin", *words])
    assert (code, out) == (2, "")
    assert err == f"{command}: unrecognized arguments: --no-such-option. See '{command} --help'.\n"
    code, out, again = marin(*words, *words_of(parser_of(words)), "--no-such-option", "--json")
    assert (code, json.loads(out)) == (2, {"error": again.removesuffix("\n"), "exit_code": 2})


@pytest.mark.parametrize("words", COMMANDS)
def test_a_superfluous_word_is_one_sentence_and_does_nothing(
    experiment: str, marin: Marin, words: tuple[str, ...]
) -> None:
    code, out, err = marin(*words, *words_of(parser_of(words)), NOTHING)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert NOTHING in err


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_needs_one_of_its_verbs(marin: Marin, group: str) -> None:
    for words in ([], [NOTHING], ["--no-such-option"]):
        code, out, err = marin(group, *words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"marin {group}: got ")
        assert err.endswith(f"See 'marin {group} --help'.\n")


@pytest.mark.parametrize("words", COMMANDS)
def test_its_help_begins_with_what_it_is_for(marin: Marin, words: tuple[str, ...]) -> None:
    code, out, err = marin(*words, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: {' '.join(['marin', *words])} ")

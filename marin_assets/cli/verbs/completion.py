"""Print a script that completes verbs, options, names of steps and files in a shell.

    bash   add to ~/.bashrc:  eval "$(marin completion bash)"
    zsh    add to ~/.zshrc, below compinit:  eval "$(marin completion zsh)"
    fish   marin completion fish > ~/.config/fish/completions/marin.fish

The script has the verbs and options of this release: make it again after an update. Names of steps come from `marin
list` when they are completed, so they are those of the code location then.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from marin_assets.cli.parsers import whole_parser
from marin_assets.run.output import print_line

SHELLS = ("bash", "zsh", "fish")
NAMES = "marin list --names 2>/dev/null"
STEPS = {
    "bash": "_marin_steps",
    "zsh": "_marin_steps",
    "fish": f"({NAMES})",
    "preamble": {
        "bash": f'_marin_steps() {{ compgen -W "$({NAMES})" -- "$1"; }}',
        "zsh": f'_marin_steps() {{ local -a names; names=("${{(@f)$({NAMES})}}"); compadd "$@" -a names; }}',
    },
}
"""Completion of the names of steps in each shell, as `shtab` takes it."""
OF_STEPS = ("selection", "step")
"""Arguments that are names of steps."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(options: argparse.Namespace) -> int:
    import shtab  # late: no other verb needs it

    parser = whole_parser()
    for action in _actions(parser):
        if action.dest in OF_STEPS:
            action.complete = STEPS  # type: ignore[attr-defined]
        elif action.type is Path or action.metavar == "FILE":
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest == "prefix":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print_line(shtab.complete(parser, options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of the parser and of the parsers of its verbs."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)

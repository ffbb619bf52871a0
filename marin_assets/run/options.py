"""Parse the options of a verb with argparse, with errors of one sentence; and options that several verbs have."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NoReturn

from marin_resources.configuration.settings import default_prefix, normalize_prefix
from marin_resources.types.errors import InvalidInputError, MarinError

SELECTIONS = {
    "run": "an experiment, a script, names of steps, --experiment NAME, or '*' for all steps",
    "materialize": "names of steps, --experiment NAME, or '*' for all steps",
    "backfill": "the name of a step with partitions",
}
"""Verb -> the words that select the steps that it computes."""


class OptionError(InvalidInputError):
    """The command line is wrong: one sentence."""


class FailedError(MarinError):
    """The verb could not do its work: one sentence. The exit code is 1."""


class OptionParser(argparse.ArgumentParser):
    takes_command = False
    """Whether the arguments after `--` are a command, stored in `options.command`."""

    def __init__(self, prog: str, description: str | None) -> None:
        keep_lines = argparse.RawDescriptionHelpFormatter
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=keep_lines)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        own, command = list(arguments), []
        if self.takes_command and "--" in own:
            split = own.index("--")
            own, command = own[:split], own[split + 1 :]
        options = _with_script(self.parse_intermixed_args(own))
        if self.takes_command:
            options.command = command
        return options

    def error(self, message: str) -> NoReturn:
        """Raise OptionError instead of printing the usage and exiting."""
        raise OptionError(f"{self.prog}: {message}. See '{self.prog} --help'.")


def _with_script(options: argparse.Namespace) -> argparse.Namespace:
    """The options with a selection's first word as --script, if it is a script: `marin status my_experiment.py`."""
    selection = getattr(options, "selection", None)
    if selection and selection[0].endswith(".py") and getattr(options, "script", "") is None:
        options.script, options.selection = selection[0], selection[1:]
    return options


def share(text: str) -> float:
    """Parse a share above 0 and up to 1. Raise argparse.ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a share above 0 and up to 1")
    return value


def add_prefix(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prefix", help="the prefix of outputs: a folder or a URL (default: MARIN_PREFIX, or outputs/)"
    )


def prefix_of(options: argparse.Namespace) -> str:
    """Return the prefix of the options, else the default; set it for child processes too. Raise SettingError."""
    if options.prefix is not None:
        os.environ["MARIN_PREFIX"] = normalize_prefix(options.prefix)
    return default_prefix()


def add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "selection",
        nargs="*",
        help="steps: part of a name, or Dagster's syntax; +A with all inputs of A, A+ with all readers",
    )
    parser.add_argument("--experiment", metavar="NAME", help="only steps of this experiment")


def require_words(verb: str, selections: Sequence[str], experiment: str | None, script: str | None = None) -> None:
    """Raise OptionError if a verb that computes was given no steps: all of them are selected on demand only."""
    if not any(word.strip() for word in (*selections, experiment or "", script or "")):
        raise OptionError(f"marin {verb}: got no selection, expected at least one. Pass {SELECTIONS[verb]}.")


def add_script(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--script", metavar="FILE", help="the steps of this script, not those of the experiments")

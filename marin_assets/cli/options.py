"""Options of a verb: argparse, whose complaints are one sentence; and the kinds of values that verbs share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NoReturn

from marin_resources.settings import default_prefix, normalize_prefix


class OptionError(ValueError):
    """A command line that cannot be run: one sentence."""


class OptionParser(argparse.ArgumentParser):
    takes_command = False
    """What stands behind `--` is a command: `options.command`."""

    def __init__(self, prog: str, description: str | None) -> None:
        keep_lines = argparse.RawDescriptionHelpFormatter
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=keep_lines)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        own, command = list(arguments), []
        if self.takes_command and "--" in own:
            split = own.index("--")
            own, command = own[:split], own[split + 1 :]
        options = self.parse_intermixed_args(own)
        if self.takes_command:
            options.command = command
        return options

    def error(self, message: str) -> NoReturn:
        """Instead of a block of usage."""
        raise OptionError(f"{self.prog}: {message}. See '{self.prog} --help'.")


def share(text: str) -> float:
    """A share above 0 and up to 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a share above 0 and up to 1")
    return value


def add_prefix(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prefix", help="where outputs lie: a folder or a URL (default: MARIN_PREFIX, or outputs/)")


def prefix_of(options: argparse.Namespace) -> str:
    """The prefix that was given, else the default; set for child processes too. Raises SettingError."""
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

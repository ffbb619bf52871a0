"""The parsers of all verbs: one tree for what must know every option, such as the shells' completion."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Mapping
from types import ModuleType

from marin_assets.cli.verb_groups import VERBS

PACKAGE = "marin_assets.cli.verbs"


def module_of(package: str, verb: str) -> ModuleType:
    """The module of a verb: what `marin <verb>` runs, or a package with verbs of its own."""
    return importlib.import_module(f"{package}.{verb.replace('-', '_')}")


def commands() -> Iterator[tuple[str, ...]]:
    """The words of each command: ("list",), …, ("cluster", "jobs"), …"""
    for verb in VERBS:
        of_group = getattr(module_of(PACKAGE, verb), "VERBS", None)
        yield from [(verb,)] if of_group is None else [(verb, subverb) for subverb in of_group]


def whole_parser() -> argparse.ArgumentParser:
    """A parser of every command line of `marin`. It imports every verb."""
    parser = argparse.ArgumentParser(prog="marin", allow_abbrev=False)
    _add_verbs(parser, VERBS, PACKAGE)
    return parser


def _add_verbs(parser: argparse.ArgumentParser, verbs: Mapping[str, str], package: str) -> None:
    of_verbs = parser.add_subparsers()
    for verb, description in verbs.items():
        module = module_of(package, verb)
        below = of_verbs.add_parser(verb, help=description, allow_abbrev=False)
        if hasattr(module, "VERBS"):
            _add_verbs(below, module.VERBS, module.__name__)
        else:
            module.add_options(below)

"""Output of a command: its result on stdout, everything else on stderr, so that a script can read the result."""

from __future__ import annotations

import sys


def print_line(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def print_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def print_raw(text: str) -> None:
    """Print to stdout without adding the end of a line."""
    print(text, end="", flush=True)  # noqa: T201

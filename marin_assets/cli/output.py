"""What a command says: its result on stdout, all else on stderr, so that a script can read the one."""

from __future__ import annotations

import sys


def tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def pass_on(text: str) -> None:
    """As it is, without a line's end of our own."""
    print(text, end="", flush=True)  # noqa: T201

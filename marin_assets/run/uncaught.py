"""Imported first: the report of an exception that a script does not handle.

Ctrl-C while a script still imports is one line, as it is once `executor_main` or a verb has begun. A step that cannot
be created is the line of the script and one sentence. Every other exception keeps its report, and an interactive Python
its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType

from marin_assets.catalog.error_line import line_of

SENTENCE = "Stopped by Ctrl-C.\n"

Report = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def shortened(report: Report) -> Report:
    """`report` with one line for KeyboardInterrupt, and for input that cannot be used."""

    def shorter(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if hasattr(sys, "ps1"):
            report(kind, error, traceback)
        elif issubclass(kind, KeyboardInterrupt):
            sys.stderr.write(SENTENCE)
        elif _is_invalid_input(kind):
            line = line_of(traceback)
            sys.stderr.write(f"{line}: {error}\n" if line else f"{error}\n")
        else:
            report(kind, error, traceback)

    return shorter


def _is_invalid_input(kind: type[BaseException]) -> bool:
    from marin_resources.types.errors import InvalidInputError  # late, as Ctrl-C may come before it is imported

    return issubclass(kind, InvalidInputError)


sys.excepthook = shortened(sys.excepthook)

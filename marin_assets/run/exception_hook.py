"""Imported first: the report of an exception that a script does not handle.

Ctrl-C while a script still imports is one line, as it is once `executor_main` or a verb has begun. A step that cannot
be created, and a call with wrong arguments, is the line of the script and one sentence. Every other exception keeps its
report, and an interactive Python its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType

from marin_assets.step.error_line import place_of

SENTENCE = "Stopped by Ctrl-C.\n"

Report = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def shortened(report: Report) -> Report:
    """`report` with one line for KeyboardInterrupt, and for a mistake in the script."""

    def shorter(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if hasattr(sys, "ps1"):
            report(kind, error, traceback)
        elif issubclass(kind, KeyboardInterrupt):
            sys.stderr.write(SENTENCE)
        elif sentence := _sentence_of(error):
            place = place_of(error)
            sys.stderr.write(f"{place}: {sentence}\n" if place else f"{sentence}\n")
        else:
            report(kind, error, traceback)

    return shorter


def _sentence_of(error: BaseException) -> str | None:
    from marin_assets.catalog.mistake import sentence_of  # late, as Ctrl-C may come before it is imported

    return sentence_of(error)


sys.excepthook = shortened(sys.excepthook)

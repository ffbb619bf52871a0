"""Imported first: Ctrl-C while a script still imports is one line, as it is once `executor_main` or a verb has begun.

Every other unhandled exception keeps its report, and an interactive Python its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType

SENTENCE = "Stopped by Ctrl-C.\n"

Report = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def shortened(report: Report) -> Report:
    """`report` with one line for KeyboardInterrupt."""

    def shorter(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt) and not hasattr(sys, "ps1"):
            sys.stderr.write(SENTENCE)
        else:
            report(kind, error, traceback)

    return shorter


sys.excepthook = shortened(sys.excepthook)

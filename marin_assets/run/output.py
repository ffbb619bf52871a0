"""Output of a command: its result on stdout, everything else on stderr, so that a script can read the result."""

from __future__ import annotations

import json
import os
import sys


class ReaderGoneError(Exception):
    """The reader of stdout, such as `head`, has closed it."""


def print_line(text: str) -> None:
    _print(f"{text}\n")


def print_error(sentence: str, exit_code: int, *, as_json: bool) -> int:
    """Print the sentence of an error to stderr, and as an object to stdout if the result was to be JSON. Return the
    exit code."""
    print_stderr(sentence)
    if as_json:
        print_line(json.dumps({"error": sentence, "exit_code": exit_code}))
    return exit_code


def print_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def print_raw(text: str) -> None:
    """Print to stdout without adding the end of a line."""
    _print(text)


def _print(text: str) -> None:
    try:
        print(text, end="", flush=True)  # noqa: T201
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's last flush fails too
        raise ReaderGoneError from None

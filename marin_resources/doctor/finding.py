"""A finding of one look: a subject, its state, and a sentence."""

from __future__ import annotations

import enum
from dataclasses import dataclass

MAX_CHARACTERS = 600


class State(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works, and is likely not what is wanted, or it could not be checked."""
    WRONG = "wrong"
    """Steps fail, or are lost, until it is fixed."""


@dataclass(frozen=True, slots=True)
class Finding:
    subject: str
    state: State
    sentence: str
    """The state of the subject; for a problem also the fix."""


def ok(subject: str, sentence: str) -> Finding:
    return Finding(subject, State.OK, one_line(sentence))


def warning(subject: str, sentence: str) -> Finding:
    return Finding(subject, State.WARNING, one_line(sentence))


def wrong(subject: str, sentence: str) -> Finding:
    return Finding(subject, State.WRONG, one_line(sentence))


def one_line(text: str) -> str:
    """A library's error in one line, cut where nobody reads on."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_CHARACTERS else f"{line[:MAX_CHARACTERS]} …"

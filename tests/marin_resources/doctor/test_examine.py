"""One look that fails or hangs does not keep the others from being taken."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from marin_resources.doctor.examine import examine
from marin_resources.doctor.finding import Finding, State, ok
from marin_resources.types.errors import MarinError


def test_a_look_that_fails_or_hangs_is_a_finding_and_the_others_are_taken() -> None:
    def hangs() -> Iterator[Finding]:
        threading.Event().wait()
        yield ok("a", "never")

    def fails() -> Iterator[Finding]:
        raise RuntimeError("a bug\nin two lines")

    looks = {"a": hangs, "b": fails, "c": lambda: [ok("c", "fine")]}
    hung, failed, fine = examine(looks, timeout_s=0.2)
    assert (hung.state, failed.state, fine.state) == (State.WRONG, State.WRONG, State.OK)
    assert "no answer within 0.2 s" in hung.sentence
    assert failed.sentence == "It could not be looked at (RuntimeError: a bug in two lines)."


def test_an_error_that_is_a_sentence_is_the_finding() -> None:
    def fails() -> Iterator[Finding]:
        raise MarinError("The roof is open. Close it.")

    (finding,) = examine({"a": fails})
    assert (finding.state, finding.sentence) == (State.WRONG, "The roof is open. Close it.")

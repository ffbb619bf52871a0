"""Take one look after the other. One that fails or hangs is a finding, and the others are still taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping

from marin_resources.doctor.finding import Finding, State, wrong
from marin_resources.types.errors import MarinError

Look = Callable[[], Iterable[Finding]]
TIMEOUT_S = 60.0
"""Time limit of one look. Those that connect to something have shorter limits of their own."""


def examine(looks: Mapping[str, Look], timeout_s: float = TIMEOUT_S) -> Iterator[Finding]:
    """Yield what the looks find, in their order. The key is the subject of a look that ends with an error.

    One mistake may stop several looks: a sentence that was yielded is not yielded again.
    """
    sentences: set[str] = set()
    for subject, look in looks.items():
        findings = _taken(subject, look, timeout_s)
        yield from (finding for finding in findings if finding.state is State.OK or finding.sentence not in sentences)
        sentences |= {finding.sentence for finding in findings}


def _taken(subject: str, look: Look, timeout_s: float) -> list[Finding]:
    """The findings of one look, in a thread that is left behind if it hangs: a mount may never answer."""
    findings: list[Finding] = []
    thread = threading.Thread(target=_take, args=(subject, look, findings), daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not thread.is_alive():
        return findings
    hangs = f"It gave no answer within {timeout_s:g} s. Look for a disk or an address that hangs."
    return [*findings, wrong(subject, hangs)]


def _take(subject: str, look: Look, findings: list[Finding]) -> None:
    try:
        findings.extend(look())
    except MarinError as error:
        findings.append(wrong(subject, str(error)))
    except Exception as error:  # a look meets libraries of all kinds; the others are still taken
        findings.append(wrong(subject, f"It could not be looked at ({type(error).__name__}: {error})."))

"""The carriers of small steps: whose a step is, and which process."""

from __future__ import annotations

import psutil
from orchestrator import note_of

from marin_resources.storage.output.notes.job_notes import Carrier


def carrier_of(path: str, attempt: int = 1) -> Carrier:
    """The carrier of an attempt at the output."""
    carrier = note_of(path, attempt).carrier
    assert carrier is not None
    return carrier


def process_of(carrier: Carrier) -> psutil.Process:
    """The process of the carrier itself."""
    [found] = [
        each
        for each in psutil.process_iter(["cmdline"])
        if carrier.mailbox in (each.info["cmdline"] or []) and "sh" not in each.name()
    ]
    return found

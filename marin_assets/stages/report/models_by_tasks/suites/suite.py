"""A suite: tasks whose scores have a mean.

A part of a suite is a task of lm-eval at one number of shots, in one or more forms; the best form is the part's score.
"""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.stages.report.records import ReportError


@dataclass(frozen=True, kw_only=True)
class Form:
    """A form in which a task is evaluated."""

    task: str
    """Name of the task or group in lm-eval; the label of its scores may be another one."""
    shots: int
    metric: str = "acc"

    def __str__(self) -> str:
        return f"{self.task} ({self.shots} shots)"


@dataclass(frozen=True, kw_only=True)
class Part:
    name: str
    forms: tuple[Form, ...]
    """The best of them is the score of the part."""
    baseline: float | None = None
    """Accuracy by chance, from 0 to 1; a suite that is centered has one for each part."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    name: str
    parts: tuple[Part, ...]
    centered: bool = False
    """Whether a score is (accuracy - baseline) / (1 - baseline): 0 by chance, 1 if every answer is right."""


def check_suite(suite: Suite) -> None:
    """Raise ReportError for no parts, a part twice or without a form, and a baseline that is none."""
    names = [part.name for part in suite.parts]
    if not suite.parts or len(set(names)) < len(names) or not all(part.forms for part in suite.parts):
        raise ReportError(
            f"The suite {suite.name!r} has the parts {names}, expected one at least, each once and with a form."
        )
    for part in suite.parts:
        if suite.centered and part.baseline is None:
            raise ReportError(
                f"The suite {suite.name!r} is centered and its part {part.name!r} has no baseline, expected the "
                "accuracy by chance, such as 0.25 of four choices. Set baseline, or leave the part out."
            )
        if part.baseline is not None and not 0 <= part.baseline < 1:
            raise ReportError(
                f"The suite {suite.name!r} has the part {part.name!r} with the baseline {part.baseline}, expected 0 or "
                "more and less than 1: a share, not per cent."
            )

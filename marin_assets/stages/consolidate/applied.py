"""One attribute of a consolidation: where it lies, and how its verdicts are taken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from marin_assets.documents.attributes import KEPT, Verdict
from marin_assets.step.values import ensure_versioned

ERROR, KEEP, REJECT = "error", "keep", "reject"
MISSING = "missing"
BELOW, ABOVE = "below_at_least", "above_at_most"
NAME = re.compile(r"[A-Za-z0-9_-]+")


class ConsolidateError(ValueError):
    """Documents and attributes that do not belong together, or a config that says nothing: one sentence."""


@dataclass(frozen=True, kw_only=True)
class Applied:
    """An attribute to apply. All of its fields count for the version, with or without `versioned()`."""

    name: str
    """What it is called in reasons and counts: "<name>/<reason>". Letters, digits, "_" and "-"."""
    path: str
    """The output of the stage that judged the documents."""
    missing: str = ERROR
    """What becomes of a document without a row: "error", "keep", or "reject" (as "<name>/missing")."""
    at_least: float | None = None
    """Keep by `value` in place of the stage's own `keep`: a lower one is rejected as "below_at_least"."""
    at_most: float | None = None
    """Likewise; a higher one is rejected as "above_at_most"."""

    def __post_init__(self) -> None:
        if isinstance(self.path, str):  # on a worker, where values are plain
            return
        for field in ("name", "missing", "at_least", "at_most"):
            object.__setattr__(self, field, ensure_versioned(getattr(self, field)))

    @property
    def has_threshold(self) -> bool:
        return self.at_least is not None or self.at_most is not None


def check_applied(attributes: Sequence[Applied]) -> None:
    """Raises ConsolidateError for a name that is none or is there twice, and for values that mean nothing."""
    seen: set[str] = set()
    for applied in attributes:
        if not isinstance(applied.name, str) or not NAME.fullmatch(applied.name) or applied.name in seen:
            raise ConsolidateError(
                f"An attribute has the name {applied.name!r}, expected letters, digits, '_' and '-', each name once. "
                "Rename it."
            )
        seen.add(applied.name)
        if applied.missing not in (ERROR, KEEP, REJECT):
            raise ConsolidateError(
                f"Attribute {applied.name!r} has missing={applied.missing!r}, expected 'error', 'keep' or 'reject'."
            )
        if applied.at_least is not None and applied.at_most is not None and applied.at_least > applied.at_most:
            raise ConsolidateError(
                f"Attribute {applied.name!r} has at_least={applied.at_least!r} above at_most={applied.at_most!r}, so "
                "it would keep nothing. Exchange them."
            )


def decide(applied: Applied, verdict: Verdict | None) -> Verdict:
    """What is done with a document of which the attribute says `verdict`, or has no row.

    A verdict without a value stays a rejection under a threshold (the text was empty, the language unknown). Raises
    ConsolidateError if it keeps.
    """
    if verdict is None:
        return KEPT if applied.missing == KEEP else Verdict(keep=False, reason=MISSING)
    if not applied.has_threshold:
        return verdict
    if verdict.value is None:
        if verdict.keep:
            raise ConsolidateError("has no value, which at_least and at_most judge. Apply it without them.")
        return verdict
    if applied.at_least is not None and not verdict.value >= applied.at_least:  # NaN is rejected too
        return Verdict(keep=False, reason=BELOW, value=verdict.value)
    if applied.at_most is not None and not verdict.value <= applied.at_most:
        return Verdict(keep=False, reason=ABOVE, value=verdict.value)
    return Verdict(keep=True, value=verdict.value, cut=verdict.cut)

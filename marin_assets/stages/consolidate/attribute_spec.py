"""One attribute of a consolidation: its path, and the rule that turns its rows into decisions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from marin_assets.documents.attributes import KEPT, Decision
from marin_assets.step.values import ensure_versioned, unwrap_versioned_value
from marin_resources.types.errors import MarinError

ERROR, KEEP, REJECT = "error", "keep", "reject"
MISSING = "missing"
BELOW, ABOVE, UNDEFINED = "below_at_least", "above_at_most", "no_number"
VALUE = "value"
NAME = re.compile(r"[A-Za-z0-9_-]+")


class ConsolidateError(MarinError, ValueError):
    """The attributes do not belong to the documents, or the config is invalid."""


@dataclass(frozen=True, kw_only=True)
class Applied:
    """An attribute to apply. All of its fields enter the version, with or without `versioned()`."""

    name: str
    """Name in reasons and counts: "<name>/<reason>". Letters, digits, "_" and "-"."""
    path: str
    """The output of the stage that decided about the documents."""
    missing: str = ERROR
    """Treatment of a document without a row: "error", "keep", or "reject" (as "<name>/missing")."""
    at_least: float | None = None
    """Keep by `value` instead of the stage's own `keep`: a lower value is rejected as "below_at_least"."""
    at_most: float | None = None
    """Keep by `value` instead of the stage's own `keep`: a higher value is rejected as "above_at_most"."""
    key: str = VALUE
    """The key of the rows whose number `at_least` and `at_most` compare, such as a signal; null is rejected as
    "no_number"."""

    def __post_init__(self) -> None:
        if isinstance(self.path, str):  # on a worker, where values are plain
            return
        for field in ("name", "missing", "at_least", "at_most"):
            object.__setattr__(self, field, ensure_versioned(getattr(self, field)))
        if self.key != VALUE:  # the default is not in versions, which are older than the field
            object.__setattr__(self, "key", ensure_versioned(self.key))

    def without_versions(self) -> Applied:
        """Itself with plain values, and without its path, which may be known later."""
        fields = ("name", "missing", "at_least", "at_most", "key")
        return Applied(path="", **{field: unwrap_versioned_value(getattr(self, field)) for field in fields})

    @property
    def has_threshold(self) -> bool:
        return self.at_least is not None or self.at_most is not None


def check_applied(attributes: Sequence[Applied]) -> None:
    """Raise ConsolidateError for an invalid or repeated name, and for invalid values of other fields."""
    seen: set[str] = set()
    for applied in attributes:
        if not isinstance(applied.name, str) or not NAME.fullmatch(applied.name) or applied.name in seen:
            raise ConsolidateError(
                f"An attribute has the name {applied.name!r}, expected letters, digits, '_' and '-', each name once. "
                "Rename the attribute."
            )
        seen.add(applied.name)
        if applied.missing not in (ERROR, KEEP, REJECT):
            raise ConsolidateError(
                f"Attribute {applied.name!r} has missing={applied.missing!r}, expected 'error', 'keep' or 'reject'."
            )
        if not isinstance(applied.key, str) or not applied.key:
            raise ConsolidateError(
                f"Attribute {applied.name!r} has key={applied.key!r}, expected a key of its rows, such as 'value'."
            )
        if applied.key != VALUE and not applied.has_threshold:
            raise ConsolidateError(
                f"Attribute {applied.name!r} has key={applied.key!r} without a threshold. Add at_least or at_most, "
                "which compare it."
            )
        if applied.at_least is not None and applied.at_most is not None and applied.at_least > applied.at_most:
            raise ConsolidateError(
                f"Attribute {applied.name!r} has at_least={applied.at_least!r} above at_most={applied.at_most!r}, so "
                "it would keep nothing. Swap them."
            )


def decide(applied: Applied, decision: Decision | None) -> Decision:
    """Return the decision to apply to a document, given the attribute's `decision`, or None if it has no row.

    Under a threshold, a decision without a value stays a rejection (the text was empty, the language unknown). Raises
    ConsolidateError if such a decision keeps the document, and for a row without a number or null at the key.
    """
    if decision is None:
        return KEPT if applied.missing == KEEP else Decision(keep=False, reason=MISSING)
    if not applied.has_threshold:
        return decision
    value = _number(applied.key, decision)
    if value is None and applied.key != VALUE:
        return Decision(keep=False, reason=UNDEFINED)
    if value is None:
        if decision.keep:
            raise ConsolidateError("has no value, which at_least and at_most compare. Apply it without them.")
        return decision
    if applied.at_least is not None and not value >= applied.at_least:  # NaN is rejected too
        return Decision(keep=False, reason=BELOW, value=value)
    if applied.at_most is not None and not value <= applied.at_most:
        return Decision(keep=False, reason=ABOVE, value=value)
    return Decision(keep=True, value=value, cut=decision.cut)


def _number(key: str, decision: Decision) -> float | None:
    """Return the number at the key of a decision's row, or None for null. Raises ConsolidateError for any other."""
    if key == VALUE:
        return decision.value
    fields = decision.fields or {}
    if key not in fields:
        raise ConsolidateError(
            f"has no key {key!r}, which at_least and at_most compare. Compute it with that key, or compare another."
        )
    value = fields[key]
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ConsolidateError(f"has {key!r} as {value!r:.60}, expected a number, which at_least and at_most compare.")
    return value

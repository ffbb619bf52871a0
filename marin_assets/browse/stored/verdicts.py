"""The verdict of a consolidation on a document, by the same functions that the stage decides with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_assets.browse.cells.short_text import short_text
from marin_assets.browse.stored.state import OutputState
from marin_assets.documents.attributes import Decision
from marin_assets.documents.document import Document
from marin_assets.stages.consolidate.attribute_spec import Applied, ConsolidateError, decide
from marin_assets.stages.consolidate.consolidate import combine
from marin_resources.storage.paths import join
from marin_resources.types.places import relative_to

FUNCTION = "marin_assets.stages.consolidate.consolidate:consolidate"


def is_consolidation(state: OutputState) -> bool:
    return state.record.fn_name == FUNCTION


def decision_in(row: Mapping[str, Any]) -> Decision | None:
    """The decision that a row of attributes has; None for any other row."""
    keep, reason, value = row.get("keep"), row.get("reason"), row.get("value")
    if not isinstance(keep, bool) or not isinstance(reason, str) or isinstance(value, str | dict | list):
        return None
    cut = row.get("cut") or ()
    try:
        spans = tuple((int(start), int(end)) for start, end in cut)
    except (TypeError, ValueError):
        return None
    return Decision(keep=keep, reason=reason, value=value, cut=spans, fields=row)


def fate_in(row: Mapping[str, Any]) -> str:
    """The decision of a row of attributes or clusters about its document, as a phrase; empty for any other row."""
    decision = decision_in(row)
    if decision is not None:
        value = "" if decision.value is None else f", value {short_text(decision.value, 40).text}"
        cut = f", {sum(end - start for start, end in decision.cut):,} characters cut" if decision.cut else ""
        return f"kept{value}{cut}" if decision.keep else f"rejected: {short_text(decision.reason, 200).text}{value}"
    if "cluster" in row and "size" in row:
        return f"in cluster {short_text(row['cluster'], 40).text} of {short_text(row['size'], 40).text}"
    return ""


def attribute_paths(state: OutputState) -> list[tuple[Applied, str]]:
    """The attributes of a consolidation in their order, each with its path today. Raises ConsolidateError."""
    config = state.record.config
    applied = config.get("attributes") if isinstance(config, Mapping) else None
    try:
        attributes = [Applied(**attribute) for attribute in applied or ()]
    except TypeError as error:
        raise ConsolidateError(f"The attributes of {state.place.text!r} cannot be read ({error}).") from None
    return [(attribute, today(state, str(attribute.path))) for attribute in attributes]


def documents_path(state: OutputState) -> str:
    """The path today of the documents of a consolidation; empty if its record does not have it."""
    config = state.record.config
    path = config.get("documents_path") if isinstance(config, Mapping) else None
    return today(state, path) if isinstance(path, str) else ""


def today(state: OutputState, path: str) -> str:
    """A path of a record, below today's prefix if the whole prefix was moved since."""
    then = (state.record.prefix or state.place.prefix).rstrip("/")
    relative = relative_to(path.rstrip("/"), [then, state.place.prefix])
    return path.rstrip("/") if relative is None else join(state.place.prefix, relative)


def verdict(document: Mapping[str, Any], decisions: list[tuple[Applied, Decision | None]]) -> tuple[bool, str]:
    """Whether the attributes keep a document, and a phrase: by what it is rejected or cut. Raises ConsolidateError."""
    text = document.get("text")
    applied = [(attribute.name, decide(attribute, decision)) for attribute, decision in decisions]
    combined = combine(Document(id=str(document.get("id")), text=text if isinstance(text, str) else ""), applied)
    cuts = "".join(f", cut by {name}" for name, _ in combined.cuts)
    if not combined.rejected_by:
        return True, f"kept{cuts}"
    value = combined.decision.value
    return False, f"rejected by {combined.rejected_by}: {combined.decision.reason}" + (
        "" if value is None else f", value {value}"
    )

"""A comparison as JSON."""

from __future__ import annotations

from typing import Any

from marin_assets.inspection.compare.compare import Comparison, StepChange
from marin_assets.inspection.compare.scores import Scores
from marin_assets.inspection.compare.side import Side
from marin_assets.inspection.explain.to_json import field_to_json


def to_json(found: Comparison, scores: Scores) -> dict[str, Any]:
    return {
        "a": _side(found.a),
        "b": _side(found.b),
        "changed": [_change(each) for each in found.changed],
        "because_of_inputs": [_change(each) for each in found.because],
        "only_a": list(found.only_a),
        "only_b": list(found.only_b),
        "same": list(found.same),
        "without_version": list(found.unknown),
        "scores": [{**vars(each), "difference": each.difference} for each in scores.scores],
        "not_computed": {"a": list(scores.missing_a), "b": list(scores.missing_b)},
        "same_scores": list(scores.same),
    }


def _side(side: Side) -> dict[str, Any]:
    return {"what": side.title, "steps": len(side.steps), "note": side.note or None}


def _change(each: StepChange) -> dict[str, Any]:
    return {
        "name": each.name,
        "was": each.was,
        "now": each.now,
        "fields": [field_to_json(field) for field in each.fields],
        "inputs": list(each.inputs),
    }

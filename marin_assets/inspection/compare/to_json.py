"""A comparison as JSON."""

from __future__ import annotations

from typing import Any

from marin_assets.inspection.compare.compare import Comparison, StepChange
from marin_assets.inspection.compare.scores import Scores
from marin_assets.inspection.compare.side import Side
from marin_assets.inspection.explain.to_json import field_to_json


def to_json(comparison: Comparison, scores: Scores) -> dict[str, Any]:
    return {
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "changed": [_change(change) for change in comparison.changed],
        "because_of_inputs": [_change(change) for change in comparison.because],
        "only_a": list(comparison.only_a),
        "only_b": list(comparison.only_b),
        "same": list(comparison.same),
        "without_version": list(comparison.unknown),
        "scores": [{**vars(score), "difference": score.difference} for score in scores.scores],
        "not_computed": {"a": list(scores.missing_a), "b": list(scores.missing_b)},
        "same_scores": list(scores.same),
    }


def _side(side: Side) -> dict[str, Any]:
    return {"what": side.title, "steps": len(side.steps), "note": side.note or None}


def _change(change: StepChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "was": change.was,
        "now": change.now,
        "fields": [field_to_json(field) for field in change.fields],
        "inputs": list(change.inputs),
    }

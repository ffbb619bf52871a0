"""An explanation as JSON."""

from __future__ import annotations

from typing import Any

from marin_assets.inspection.explain.explanation import Explanation
from marin_assets.inspection.explain.materializations import Materialization
from marin_assets.plan.reasons.differences import FieldChange

RECORDED = (
    *("dagster_run_id", "user", "host", "cluster", "attempt", "started_at", "finished_at", "duration_s", "error"),
    *("git", "project", "environment", "inputs", "spent"),
)


def to_json(explanation: Explanation) -> dict[str, Any]:
    return {
        "this": materialization_to_json(explanation.this),
        "before": materialization_to_json(explanation.before) if explanation.before is not None else None,
        "why": explanation.why.value,
        "complete_before": explanation.gone.isoformat() if explanation.gone is not None else None,
        "recipe": [field_to_json(field) for field in explanation.recipe.fields],
        "changed_inputs": [
            {
                "name": changed.name,
                "was": changed.was,
                "now": changed.now,
                "depth": changed.depth,
                "known": changed.differences is not None,
                "fields": [field_to_json(field) for field in changed.differences.fields] if changed.differences else [],
                "because_of": [below.name for below in changed.differences.inputs] if changed.differences else [],
            }
            for changed in explanation.inputs
        ],
        "besides": [
            {"kind": difference.kind.value, "what": difference.what, "was": difference.was, "now": difference.now}
            for difference in explanation.drift
        ],
        "not_recorded": [kind.value for kind in explanation.unknown],
        "attempts": [vars(attempt) for attempt in explanation.attempts],
    }


def materialization_to_json(materialization: Materialization) -> dict[str, Any]:
    fields = materialization.record.to_dict()
    record = {name: fields.get(name) for name in RECORDED}
    state = "removed" if materialization.removed else "complete" if materialization.complete else "failed"
    return {"version": materialization.version, "path": materialization.path, "state": state, **record}


def field_to_json(change: FieldChange) -> dict[str, Any]:
    """A field that one side lacks has no value there."""
    was = {} if change.added else {"was": change.was}
    now = {} if change.removed else {"now": change.now}
    return {"field": change.field, **was, **now}

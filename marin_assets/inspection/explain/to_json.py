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


def to_json(found: Explanation) -> dict[str, Any]:
    return {
        "this": materialization_to_json(found.this),
        "before": materialization_to_json(found.before) if found.before is not None else None,
        "why": found.why.value,
        "complete_before": found.gone.isoformat() if found.gone is not None else None,
        "recipe": [field_to_json(each) for each in found.recipe.fields],
        "changed_inputs": [
            {
                "name": each.name,
                "was": each.was,
                "now": each.now,
                "depth": each.depth,
                "known": each.differences is not None,
                "fields": [field_to_json(field) for field in each.differences.fields] if each.differences else [],
                "because_of": [below.name for below in each.differences.inputs] if each.differences else [],
            }
            for each in found.inputs
        ],
        "besides": [
            {"kind": each.kind.value, "what": each.what, "was": each.was, "now": each.now} for each in found.drift
        ],
        "not_recorded": [kind.value for kind in found.unknown],
        "attempts": [vars(each) for each in found.attempts],
    }


def materialization_to_json(each: Materialization) -> dict[str, Any]:
    known = each.record.to_dict()
    record = {name: known.get(name) for name in RECORDED}
    state = "removed" if each.removed else "complete" if each.complete else "failed"
    return {"version": each.version, "path": each.path, "state": state, **record}


def field_to_json(each: FieldChange) -> dict[str, Any]:
    """A field that one side lacks has no value there."""
    was = {} if each.added else {"was": each.was}
    now = {} if each.removed else {"now": each.now}
    return {"field": each.field, **was, **now}

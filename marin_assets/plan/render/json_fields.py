"""A plan as JSON: everything that is known of each output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marin_assets.plan.plan import Action, Planned
from marin_assets.plan.reasons.causes import Cause, Why
from marin_assets.plan.record_facts.origins import origins_as_json, total_as_json, total_of_lineages
from marin_assets.plan.render.groups import total_to_compute

FORMAT_VERSION = 1


def plan_as_json(planned: Sequence[Planned], prefix: str) -> dict[str, Any]:
    """The plan: sums, and in `outputs` each output with its reason, inputs first."""
    total = total_to_compute(planned)
    return {
        "format_version": FORMAT_VERSION,
        "prefix": prefix,
        "counts": {action.value: sum(item.action is action for item in planned) for action in Action},
        "reused_bytes": sum(item.bytes or 0 for item in planned if item.action is Action.REUSE),
        "raw_data": total_as_json(total_of_lineages(item.node for item in planned)),
        "expected": {
            "compute_s": round(total.compute_s, 3),
            "device_hours": round(total.device_hours, 4),
            "dollars": round(total.dollars, 2),
            "unpriced_device_hours": round(total.unpriced_hours, 4),
            "outputs_with_history": total.known - total.by_flops,
            "outputs_by_flops": total.by_flops,
            "outputs_without_estimate": total.unknown,
        },
        "outputs": [output_as_json(item) for item in planned],
    }


def output_as_json(item: Planned) -> dict[str, Any]:
    """One output of a plan."""
    node, seen = item.node, item.observed
    return {
        "step": node.name,
        "partition": node.key,
        "version": node.version.hash,
        "identity": node.output.identity,
        "action": item.action.value,
        "kind": item.kind.value,
        "reason": item.reason,
        "path": seen.path,
        "data_path": seen.data_path,
        "bytes": item.bytes,
        "finished_at": seen.record.finished_at,
        "to_be_verified": seen.listed and seen.done,
        "inputs": list(node.inputs),
        "origins": origins_as_json(node.origins),
        **({} if item.why is None else _why(item.why)),
        "drift": [
            {"kind": drift.kind.value, "what": drift.what, "was": drift.was, "now": drift.now} for drift in item.drift
        ],
        "damage": item.damage or None,
        "expected": None
        if item.expected is None
        else {
            "compute_s": round(item.expected.compute_s, 3),
            "device_hours": item.expected.device_hours,
            "dollars": item.expected.dollars,
            "median_of": item.expected.outputs,
        },
        "site": None if item.site is None else {"cluster": item.site.cluster, "why": item.site.why},
    }


def _why(why: Why) -> dict[str, Any]:
    return {
        "earlier": {"version": why.earlier.version, "finished_s": why.earlier.finished_s},
        "changed_inputs": list(why.inputs),
        "causes": [_cause(cause) for cause in why.causes],
    }


def _cause(cause: Cause) -> dict[str, Any]:
    if cause.change is None:
        return {"step": cause.step, "field": None}
    return {"step": cause.step, "field": cause.change.field, "was": cause.change.was, "now": cause.change.now}

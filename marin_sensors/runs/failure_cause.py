"""Why a run failed, by its log."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

from marin_resources.dagster_fixes.console import failure_sentence, first_cause, run_failure

EVENTS = {
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.RUN_FAILURE,
    dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
}


@dataclass(frozen=True, kw_only=True)
class FailedRun:
    steps: tuple[str, ...]
    """Dagster's names of the steps that failed, in their order."""
    assets: frozenset[dg.AssetKey]
    """The assets that these steps were to materialize."""
    sentence: str
    """The error of the first step that failed, or of the run."""
    log: tuple[str, ...]
    """The last lines of the traceback of that step."""


def read_failed_run(instance: dg.DagsterInstance, run_id: str) -> FailedRun:
    """Why the run failed."""
    steps, sentence, log = [], "", []
    planned: dict[str, set[dg.AssetKey]] = {}
    for entry in instance.all_logs(run_id, of_type=EVENTS):
        event = entry.dagster_event
        if event is None:
            continue
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED:
            if event.step_key is not None and event.asset_key is not None:
                planned.setdefault(event.step_key, set()).add(event.asset_key)
            continue
        if event.event_type is not dg.DagsterEventType.STEP_FAILURE:
            sentence = sentence or run_failure(event)
            continue
        steps.append(str(event.step_key))
        data = event.step_failure_data
        metadata = data.user_failure_data.metadata if data.user_failure_data else {}
        if len(steps) == 1:
            sentence, trace, cause = failure_sentence(event), metadata.get("traceback"), first_cause(data.error)
            lines = str(trace.value).strip("`\n ") if trace else "".join(cause.stack) if cause else ""
            log = lines.splitlines()
    return FailedRun(
        steps=tuple(steps),
        assets=frozenset(key for step in steps for key in planned.get(step, ())),
        sentence=" ".join(sentence.split()),
        log=tuple(log),
    )

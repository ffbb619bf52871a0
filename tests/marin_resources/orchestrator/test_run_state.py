"""The states of outputs that a run has just read."""

from __future__ import annotations

import dataclasses
import time

import dagster as dg

from marin_resources.orchestrator.run_state import RECENT_S, RunState, planned_states
from marin_resources.types.output import Observed, Output

A, B = (Output(name=name, version="abc123", identity=name) for name in ("a", "b"))


def read(output: Output, *, ago_s: float) -> dict[Output, Observed]:
    return {output: Observed(path=output.relative(), read_at_s=time.monotonic() - ago_s)}


def test_a_state_is_used_until_it_is_old(instance: dg.DagsterInstance) -> None:
    state, new, old = RunState(instance, "run"), read(A, ago_s=0), read(B, ago_s=RECENT_S + 1)
    state.remember({**new, **old})
    assert state.recent([A, B]) == new


def test_the_newer_state_of_an_output_is_used(instance: dg.DagsterInstance) -> None:
    state, before = RunState(instance, "run"), read(A, ago_s=1)
    after = {A: dataclasses.replace(before[A], path="elsewhere")}
    state.remember(before)
    state.remember(after)
    assert state.recent([A]) == after


def test_a_state_whose_files_were_not_read_is_not_recent(instance: dg.DagsterInstance) -> None:
    state = RunState(instance, "run")
    state.remember({A: Observed(path="a", listed=True)})
    assert state.recent([A]) == {}


def test_a_run_begins_with_the_states_of_its_plan_and_the_next_one_without(instance: dg.DagsterInstance) -> None:
    planned = read(A, ago_s=0)
    with planned_states(planned):
        first = RunState(instance, "first")
    assert first.recent([A]) == planned
    assert RunState(instance, "second").recent([A]) == {}

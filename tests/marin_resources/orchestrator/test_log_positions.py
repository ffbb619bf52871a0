"""Where a run has come to in a job's log outlives the run, in the instance that all runs share."""

from __future__ import annotations

import dagster as dg

from marin_resources.orchestrator.log_positions import LogPositions


def test_the_next_run_knows_what_was_shown_until_it_is_forgotten(instance: dg.DagsterInstance) -> None:
    first = LogPositions(instance)
    assert first.of("step-a1") == 0
    first.note("step-a1", 1000)
    first.note("step-a2", 5)
    assert LogPositions(instance).of("step-a1") == 1000
    first.forget("step-a1")
    assert LogPositions(instance).of("step-a1") == 0
    assert LogPositions(instance).of("step-a2") == 5
    first.forget("never noted")


def test_it_is_written_every_5_seconds_at_most(instance: dg.DagsterInstance) -> None:
    now_s = 0.0
    positions = LogPositions(instance, lambda: now_s)
    for at_s, noted, written in ((1000.0, 1, 1), (1004.9, 2, 1), (1005.0, 3, 3), (1006.0, 4, 3), (1012.0, 5, 5)):
        now_s = at_s
        positions.note("step-a1", noted)
        assert LogPositions(instance).of("step-a1") == written


def test_an_instance_of_a_test_will_do() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        LogPositions(instance).note("step-a1", 7)
        assert LogPositions(instance).of("step-a1") == 7

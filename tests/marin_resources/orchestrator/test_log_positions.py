"""How much of a job's log was shown outlives the run, in the instance that all runs share."""

from __future__ import annotations

import dagster as dg
import pytest

from marin_resources.orchestrator.log_positions import LogPositions, output_line
from marin_resources.ray_tpu.cluster.monitor.job_log import Shown


def show(positions: LogPositions, *lines: str, before: Shown = Shown(), step: str = "toy/a") -> None:
    """Show lines of the job "a1" as a run does."""
    for line in lines:
        positions.show("a1", step, before, lambda line=line: print(output_line(step, line), flush=True))


def test_the_next_run_knows_the_bytes_that_were_shown_until_they_are_forgotten(instance: dg.DagsterInstance) -> None:
    now_s = 1000.0
    first = LogPositions(instance, "no-run", lambda: now_s)
    assert first.of("a1", "toy/a") == Shown()
    show(first, "one")
    now_s = 1005.0
    first.note("a1", "toy/a", 1000)
    assert LogPositions(instance, "run-2").of("a1", "toy/a") == Shown(bytes=1000)
    first.forget("a1")
    assert LogPositions(instance, "run-2").of("a1", "toy/a") == Shown()
    first.forget("never noted")


def test_it_is_written_with_the_first_line_and_then_every_5_seconds_at_most(instance: dg.DagsterInstance) -> None:
    now_s = 1000.0
    positions = LogPositions(instance, "no-run", lambda: now_s)
    positions.note("a1", "toy/a", 7)
    assert LogPositions(instance, "run-2").of("a1", "toy/a") == Shown(), "nothing was shown"
    show(positions, "one")
    for at_s, noted, written in ((1004.9, 2, 0), (1005.0, 3, 3), (1006.0, 4, 3), (1012.0, 5, 5)):
        now_s = at_s
        positions.note("a1", "toy/a", noted)
        assert LogPositions(instance, "run-2").of("a1", "toy/a").bytes == written


def test_lines_after_the_noted_bytes_are_counted_in_the_output_of_the_run_that_was_killed(
    instance: dg.DagsterInstance,
) -> None:
    found: list[Shown] = []

    @dg.op
    def first(context) -> None:
        positions = LogPositions(context.instance, context.run_id)
        show(positions, "of an earlier job")
        positions.forget("a1")
        show(positions, "one", "two", "three")
        print(output_line("toy/b", "of another step"))

    @dg.op
    def second(context) -> None:
        positions = LogPositions(context.instance, context.run_id)
        found.append(positions.of("a1", "toy/a"))
        show(positions, "four", before=found[0])

    @dg.job(executor_def=dg.in_process_executor)
    def one() -> None:
        first()

    @dg.job(executor_def=dg.in_process_executor)
    def two() -> None:
        second()

    assert one.execute_in_process(instance=instance).success
    assert two.execute_in_process(instance=instance).success
    third = LogPositions(instance, "run-3").of("a1", "toy/a")
    assert (found, third) == ([Shown(lines_after=3)], Shown(lines_after=4))


@pytest.mark.parametrize("noted", ["", "x", "17", "17 0 2 no-such-run"])
def test_a_row_of_another_version_is_as_good_as_it_can_be(instance: dg.DagsterInstance, noted: str) -> None:
    instance.run_storage.set_cursor_values({"marin/log/a1": noted})
    shown = LogPositions(instance, "run-2").of("a1", "toy/a")
    assert shown == Shown(bytes=17 if noted.startswith("17") else 0)


def test_an_instance_of_a_test_will_do() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        show(LogPositions(instance, "run-1"), "one")
        assert LogPositions(instance, "run-2").of("a1", "toy/a") == Shown()

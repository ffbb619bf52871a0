"""What an output has cost, as its record says, and what is said of records that say less."""

from __future__ import annotations

from typing import Any

from marin_resources.hardware.resources import cpu, tpu
from marin_resources.storage.output.attempts import begin_attempt, end_attempt
from marin_resources.storage.output.notes.cost import RecordCost, cost_of, spent_of, with_earlier
from marin_resources.types.record import Record

PATH = "x-123456"


def mark(path: str, number: int, **ended: Any) -> None:
    begin_attempt(path, number, {"identity": "i"})
    if ended:
        end_attempt(path, number, ended)


def test_a_record_says_what_its_output_has_cost() -> None:
    spent = spent_of(tpu("v4-16", cpus=3), 100.0, None)
    cost = cost_of(Record.from_dict({"spent": spent, "bytes_in": 5, "manifest": {"bytes": 7}, "cluster": "central"}))
    assert cost == RecordCost(
        wall_s=100.0,
        reserved_cpu_s=300.0,
        device_s=800.0,
        pool="tpu_v4_16",
        cluster="central",
        bytes_in=5,
        bytes_out=7,
    )


def test_what_an_older_record_does_not_say_is_unknown_and_not_nothing() -> None:
    cost = cost_of(Record.from_dict({"duration_s": 3.5, "manifest": {"bytes": 7}}))
    assert (cost.wall_s, cost.bytes_out) == (3.5, 7)
    assert (cost.cpu_s, cost.device_s, cost.device_hours, cost.bytes_in, cost.priced_cpu_s) == (None,) * 5
    assert cost_of(Record.from_dict({})) == RecordCost()
    assert cost_of(Record.from_dict({"ledger": {"device_hours": 2.0}})).device_s == 7200


def test_shards_that_used_more_cpus_than_their_step_reserved_are_paid_for() -> None:
    assert cost_of(Record.from_dict({"spent": spent_of(cpu(2), 10.0, 70.0)})).priced_cpu_s == 70.0
    assert cost_of(Record.from_dict({"spent": spent_of(cpu(2), 10.0, 5.0)})).priced_cpu_s == 20.0


def test_attempts_that_failed_are_in_the_sums_and_one_that_was_killed_is_counted(disk_prefix: str) -> None:
    path, own = f"{disk_prefix}/{PATH}", spent_of(cpu(2), 10.0, 8.0)
    mark(path, 1, outcome="failed", spent=with_earlier(own, path, 1))
    mark(path, 2)  # killed
    mark(path, 4, outcome="failed", spent=with_earlier(own, path, 4))  # 3 is the number of a job that never began
    mark(path, 5)
    sums = with_earlier(own, path, 6)
    assert (sums["wall_s"], sums["cpu_s"], sums["reserved_cpu_s"]) == (30.0, 24.0, 60.0)
    assert (sums["attempts"], sums["unknown_attempts"]) == (3, 2)


def test_an_output_that_was_complete_before_has_its_own_cost(disk_prefix: str) -> None:
    path, own = f"{disk_prefix}/{PATH}", spent_of(cpu(), 10.0, 8.0)
    mark(path, 1, outcome="failed", spent=own)
    mark(path, 2, outcome="success", spent=own)
    assert with_earlier(own, path, 3) == own

"""Device hours and transfers of a window of time, from attempts in a store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import object_stores
import pytest
from abandoned import kill, worker_of
from one_output import output
from usage_lab import HOUR, NOON, Lab, move

from marin_resources.hardware.resources import cpu, gpu, tpu
from marin_resources.storage.control import control
from marin_resources.storage.output.attempts import add_facts, end_attempt, log_path
from marin_resources.storage.output.store import Store
from marin_resources.storage.usage.entries import FOLDER, UsageError, enter, entries, entry_of
from marin_resources.storage.usage.usage import UsageReader, device_hours, used


@pytest.fixture
def lab(disk_or_gcs_prefix: str) -> Lab:
    return Lab(disk_or_gcs_prefix)


def test_hours_are_counted_by_pool_and_device(lab: Lab) -> None:
    lab.ran("train/a", gpu("H100", 2), NOON, 3)
    lab.ran("train/b", gpu("H100"), NOON, 1)
    lab.ran("train/c", tpu("v5p-32", slices=2), NOON, 0.5)
    lab.ran("words", cpu(8), NOON, 5)
    assert lab.hours(NOON - HOUR, NOON + 9 * HOUR) == {"gpu_H100": 7, "tpu_v5p_32": 16}


def test_every_attempt_counts_whatever_its_end(lab: Lab) -> None:
    for attempt, outcome in enumerate(("stopped", "failed", "success"), 1):
        path = lab.begin("train/a", gpu(count=4), NOON + attempt * HOUR, attempt)
        lab.end(path, NOON + (attempt + 0.5) * HOUR, attempt, outcome)
    found = used(lab.prefix, NOON, NOON + 9 * HOUR)
    assert [(each.entry.attempt, each.hours, each.ended) for each in found] == [(n, 2.0, True) for n in (1, 2, 3)]


def test_of_an_attempt_the_part_within_the_window_counts(lab: Lab) -> None:
    lab.ran("train/a", gpu(), NOON - 48 * HOUR, 100)
    assert lab.hours(NOON, NOON + 24 * HOUR) == {"gpu": 24}
    assert lab.hours(NOON + 24 * HOUR, NOON + 72 * HOUR) == {"gpu": 28}
    assert lab.hours(NOON + 60 * HOUR, NOON + 72 * HOUR) == {}
    assert lab.hours(NOON - 72 * HOUR, NOON - 49 * HOUR) == {}


def test_a_reader_that_is_asked_again_sees_what_came_since(lab: Lab) -> None:
    reader = UsageReader(prefix=lab.prefix)
    running = lab.begin("train/a", gpu(), NOON)
    lab.ran("train/b", gpu(), NOON, 1)
    assert [each.ended for each in reader.used(NOON, NOON + HOUR)] == [False, True]
    lab.end(running, NOON + 2 * HOUR)
    lab.ran("train/c", gpu(), NOON + HOUR, 1)
    assert device_hours(reader.used(NOON, NOON + 9 * HOUR)) == {"gpu": 4}
    assert device_hours(reader.used(NOON + 90 * HOUR, NOON + 99 * HOUR)) == {}
    assert device_hours(reader.used(NOON, NOON + 9 * HOUR)) == {"gpu": 4}


def test_what_runs_costs_until_now_and_what_was_killed_until_its_last_sign(lab: Lab) -> None:
    what = output()
    path = Store(lab.prefix).locate(what)
    worker = worker_of(lab.prefix, what)
    try:
        started = datetime.now(UTC) - 5 * HOUR
        entry = entry_of(path, what.label, 1, gpu(), started=started, run_id=None, moved_bytes=None)
        assert entry is not None
        enter(lab.prefix, entry)
        assert lab.hours(started, started + 5 * HOUR)["gpu"] == pytest.approx(5, abs=0.05)
    finally:
        kill(worker)
    control.put(log_path(path, 1), b"step 100\n")
    assert lab.hours(started, started + 50 * HOUR)["gpu"] == pytest.approx(5, abs=0.05)


def test_on_slices_each_try_costs_what_it_held_and_waiting_costs_nothing(lab: Lab) -> None:
    path = lab.begin("train/a", tpu("v4-16", slices=(1, 2)), NOON)
    lab.tries(path, (8, NOON, 1), (16, NOON + 5 * HOUR, 2))
    lab.end(path, NOON + 8 * HOUR)
    assert lab.hours(NOON, NOON + 9 * HOUR) == {"tpu_v4_16": 8 + 32}
    assert lab.hours(NOON + 2 * HOUR, NOON + 5 * HOUR) == {"tpu_v4_16": 0}
    assert lab.hours(NOON + 6 * HOUR, NOON + 6.5 * HOUR) == {"tpu_v4_16": 8}


def test_a_try_under_way_costs_until_the_last_sign_of_the_attempt(disk_prefix: str) -> None:
    lab = Lab(disk_prefix)
    path = lab.begin("train/a", tpu("v4-16", slices=(1, 2)), NOON)
    lab.tries(path, (8, NOON, 1), (16, NOON + 5 * HOUR, None))
    lab.log(path, NOON + 6 * HOUR)
    assert lab.hours(NOON, NOON + 9 * HOUR) == {"tpu_v4_16": 8 + 16}


def test_tries_that_the_mark_no_longer_has_count_as_the_fewest_slices(lab: Lab) -> None:
    path = lab.begin("train/a", tpu("v4-16", slices=(1, 2)), NOON)
    lab.tries(path, (16, NOON + 2 * HOUR, 1), first=9)
    lab.end(path, NOON + 3 * HOUR)
    assert lab.hours(NOON, NOON + 9 * HOUR) == {"tpu_v4_16": 16 + 16}


def test_the_tries_of_other_attempts_and_of_older_records_do_not_count(lab: Lab) -> None:
    path = lab.begin("train/a", tpu("v4-16"), NOON)
    lab.tries(path, (800, NOON, 1))
    lab.end(path, NOON + HOUR)
    path = lab.begin("train/b", tpu("v4-16"), NOON, attempt=2)
    lab.tries(path, (0, NOON, 1), attempt=2)
    lab.end(path, NOON + HOUR, attempt=2)
    assert lab.hours(NOON, NOON + 9 * HOUR) == {"tpu_v4_16": 800 + 8}


def test_what_was_removed_costs_nothing_more(disk_prefix: str) -> None:
    lab = Lab(disk_prefix)
    path = Path(lab.begin("train/a", gpu(), NOON))
    (path / ".marin/attempts/1.json").unlink()
    assert lab.hours(NOON, NOON + 9 * HOUR) == {"gpu": 0}


def test_bytes_from_other_regions_count_from_the_first_attempt_of_the_window(lab: Lab) -> None:
    path = lab.begin("words", cpu(), NOON - 99 * HOUR, moved_bytes=0)
    lab.end(path, NOON - 98 * HOUR)
    move(path, 500)
    for attempt in (2, 3):
        lab.begin("words", cpu(), NOON + attempt * HOUR, attempt, moved_bytes=500 + 100 * attempt)
        lab.end(path, NOON + (attempt + 0.5) * HOUR, attempt)
    move(path, 400)
    found = used(lab.prefix, NOON, NOON + 9 * HOUR)
    assert [(each.entry.attempt, each.moved_bytes, each.hours) for each in found] == [(2, 200, 0), (3, 0, 0)]
    assert device_hours(found) == {}


DAMAGES: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"\x00\xff", "is not JSON"),
    "a list": (b"[]", "is not a JSON object"),
    "newer": (b'{"format_version": 9}', "9"),
    "no path": (b'{"format_version": 1, "step": "a"}', "path"),
    "no zone": (
        b'{"format_version": 1, "path": "a", "step": "a", "attempt": 1, "devices": 1, "started_at": "2026-01-31"}',
        "no time zone",
    ),
    "no time": (
        b'{"format_version": 1, "path": "a", "step": "a", "attempt": 1, "devices": 1, "started_at": "x"}',
        "started_at='x'",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_one_sentence_with_its_path(disk_prefix: str, damage: str) -> None:
    lab, (data, expected) = Lab(disk_prefix), DAMAGES[damage]
    lab.ran("train/a", gpu(), NOON, 1)
    [path] = entries(disk_prefix, NOON.date(), NOON.date())
    Path(path).write_bytes(data)
    with pytest.raises(UsageError) as raised:
        lab.hours(NOON, NOON + HOUR)
    assert path in str(raised.value)
    assert expected in str(raised.value)


def test_a_damaged_start_of_a_try_is_one_sentence(disk_prefix: str) -> None:
    lab = Lab(disk_prefix)
    path = lab.begin("train/a", tpu("v4-16"), NOON)
    add_facts(path, 1, {"tries": [{"attempt": 1, "devices": 8, "started_at": "2026-01-31T12:00"}]})
    with pytest.raises(UsageError, match=r"The mark of attempt 1 at '.*' has started_at of a try='2026-01-31T12:00'"):
        lab.hours(NOON, NOON + HOUR)


def test_a_damaged_end_is_one_sentence(disk_prefix: str) -> None:
    lab = Lab(disk_prefix)
    path = lab.begin("train/a", gpu(), NOON)
    end_attempt(path, 1, {"finished_at": "yesterday"})
    with pytest.raises(UsageError, match=r"The mark of attempt 1 at '.*' has finished_at='yesterday', expected a time"):
        lab.hours(NOON, NOON + HOUR)


@pytest.fixture
def requests_of() -> Iterator[Any]:
    bucket = object_stores.gcs_bucket()
    yield bucket
    bucket.forget()


def test_a_look_lists_each_day_and_reads_only_what_is_new(requests_of: Any) -> None:
    lab = Lab(requests_of.prefix)
    for number in range(10):
        lab.ran(f"train/{number}", gpu(), NOON + number * timedelta(days=1), 1)
    reader, until = UsageReader(prefix=lab.prefix), NOON + timedelta(days=30)
    assert device_hours(reader.used(NOON, until)) == {"gpu": 10}
    before = requests_of.requests_made()
    assert device_hours(reader.used(NOON, until)) == {"gpu": 10}
    assert requests_of.requests_made() - before <= 11, "a listing of the days, and one of each"
    lab.ran("train/new", gpu(), NOON + timedelta(days=3), 1)
    before = requests_of.requests_made()
    assert device_hours(reader.used(NOON, until)) == {"gpu": 11}
    assert requests_of.requests_made() - before <= 13, "and its entry and its mark"


def test_entries_of_other_days_are_not_listed(lab: Lab) -> None:
    lab.ran("train/a", gpu(), NOON - timedelta(days=400), 1)
    lab.ran("train/b", gpu(), NOON, 1)
    assert [f"{FOLDER}/2026-01-31/" in path for path in entries(lab.prefix, NOON.date(), NOON.date())] == [True]
    assert lab.hours(NOON - HOUR, NOON + HOUR) == {"gpu": 1}

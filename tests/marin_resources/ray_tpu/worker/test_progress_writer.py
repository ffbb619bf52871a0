"""How far a function has come, and how fast, is noted beside its output while it runs."""

from __future__ import annotations

import pytest

from marin_resources.ray_tpu.worker.progress_writer import ProgressWriter, noted_pace
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.notes.progress import Progress, ProgressError, read_progress, write_progress
from marin_resources.storage.paths import join


def test_a_pace_is_read_as_it_was_noted_on_every_store(any_prefix: str) -> None:
    path = join(any_prefix, "raw/x")
    assert read_progress(path, 1) is None
    for pace in (
        Progress(step=3, at="2026-01-01T00:00:00+00:00"),
        Progress(step=9, at="2026-01-01T00:00:15", steps_per_s=0.4, of=20, numbers={"loss": 2.5}),
    ):
        write_progress(path, 1, pace)
        assert read_progress(path, 1) == pace
    write_bytes(join(path, ".marin/attempts/1.pace.json"), b"NONSENSE")
    with pytest.raises(ProgressError, match="It decides nothing; remove it"):
        read_progress(path, 1)


def test_the_speed_is_that_since_the_last_note(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[Progress] = []
    now_s = 0.0
    monkeypatch.setattr("marin_resources.ray_tpu.worker.progress_writer.time.monotonic", lambda: now_s)
    notes = ProgressWriter(noted.append)
    for step, now_s in ((100, 10.0), (110, 15.0), (110, 20.0), (130, 25.0), (120, 30.0)):  # noqa: B007
        notes.stepped(step)
        notes.note()
    notes.end()
    assert [(each.step, each.steps_per_s) for each in noted] == [
        (100, None),
        (110, 2.0),
        (110, 0.0),
        (130, 4.0),
        (120, None),
    ]


def test_a_function_that_reports_nothing_has_no_note_and_no_thread(disk_prefix: str) -> None:
    with noted_pace(disk_prefix, 1) as notes:
        notes.note()
        assert notes._thread is None
    assert read_progress(disk_prefix, 1) is None


def test_a_store_that_fails_does_not_stop_the_function(caplog: pytest.LogCaptureFixture) -> None:
    def broken(pace: Progress) -> None:
        raise OSError("no space left")

    notes = ProgressWriter(broken)
    notes.stepped(1)
    notes.note()
    notes.end()
    assert "the pace cannot be noted now (OSError: no space left)" in caplog.text

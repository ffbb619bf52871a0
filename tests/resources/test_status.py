from __future__ import annotations

import json
from pathlib import Path

import pytest

from marin_resources.output import Status
from marin_resources.storage.status import NAME, StatusError, read_status, write_status


@pytest.mark.parametrize("status", list(Status))
def test_a_status_comes_back_as_it_was_written(tmp_path: Path, status: Status) -> None:
    write_status(str(tmp_path), status)
    assert (tmp_path / NAME).read_text() == status.value
    assert read_status(str(tmp_path)) is status


def test_nothing_there_is_no_status(tmp_path: Path) -> None:
    assert read_status(str(tmp_path / "nowhere")) is None
    (tmp_path / NAME).write_text("\n")
    assert read_status(str(tmp_path)) is None


def test_a_file_where_the_folder_should_be_has_no_status(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("data")
    assert read_status(str(tmp_path / "file")) is None


def events(*statuses: str) -> str:
    rows = ({"date": "2024-11-01T10:00:00", "status": s, "message": None, "ray_task_id": "t"} for s in statuses)
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["WAITING", "RUNNING", "SUCCESS"], Status.SUCCESS),
        (["SUCCESS", "RUNNING"], Status.RUNNING),
        (["RUNNING", "FAILED"], Status.FAILED),
        (["WAITING", "DEP_FAILED"], Status.DEP_FAILED),
        (["RUNNING", "CANCELLED"], None),
        (["WAITING"], None),
        (["UNKNOWN"], None),
    ],
)
def test_of_marins_event_log_the_last_line_counts(tmp_path: Path, statuses: list[str], expected: Status | None) -> None:
    (tmp_path / NAME).write_text(events(*statuses))
    assert read_status(str(tmp_path)) is expected


def test_a_status_with_a_newline_is_read(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("SUCCESS\n")
    assert read_status(str(tmp_path)) is Status.SUCCESS


@pytest.mark.parametrize("text", ["DONE", "success", events("EXPLODED"), '{"no": "status"}', '{"cut off'])
def test_an_unknown_status_is_an_error_that_names_the_path(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(StatusError, match=str(tmp_path)):
        read_status(str(tmp_path))

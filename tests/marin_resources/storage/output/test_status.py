"""The status on each kind of store: a local disk, GCS and S3."""

from __future__ import annotations

import json
import re

import pytest

from marin_resources.storage.control import control
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.status import NAME, StatusError, read_status, write_status
from marin_resources.storage.paths import join
from marin_resources.types.output import Status


@pytest.mark.parametrize("status", list(Status))
def test_a_status_comes_back_as_it_was_written(any_prefix: str, status: Status) -> None:
    write_status(any_prefix, status)
    assert control.read(join(any_prefix, NAME)).data == status.value.encode()  # type: ignore[union-attr]
    assert read_status(any_prefix) is status


def test_nothing_there_is_no_status(any_prefix: str) -> None:
    assert read_status(join(any_prefix, "nowhere")) is None
    write_bytes(join(any_prefix, NAME), b"\n")
    assert read_status(any_prefix) is None


def test_a_file_where_the_folder_should_be_has_no_status(any_prefix: str) -> None:
    write_bytes(join(any_prefix, "file"), b"data")
    assert read_status(join(any_prefix, "file")) is None


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
def test_of_marins_event_log_the_last_line_counts(
    any_prefix: str, statuses: list[str], expected: Status | None
) -> None:
    write_bytes(join(any_prefix, NAME), events(*statuses).encode())
    assert read_status(any_prefix) is expected


def test_a_status_with_a_newline_is_read(any_prefix: str) -> None:
    write_bytes(join(any_prefix, NAME), b"SUCCESS\n")
    assert read_status(any_prefix) is Status.SUCCESS


@pytest.mark.parametrize("text", ["DONE", "success", events("EXPLODED"), '{"no": "status"}', '{"cut off'])
def test_an_unknown_status_is_an_error_that_names_the_path(any_prefix: str, text: str) -> None:
    write_bytes(join(any_prefix, NAME), text.encode())
    with pytest.raises(StatusError, match=re.escape(any_prefix)):
        read_status(any_prefix)

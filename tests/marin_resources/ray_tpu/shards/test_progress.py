from __future__ import annotations

import logging

import pytest

from marin_resources.ray_tpu.shards import map_shards
from marin_resources.ray_tpu.shards.map_shards import Progress


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """What is logged; the clock moves ten seconds at each look."""
    clock = iter(range(0, 100_000, 10))
    monkeypatch.setattr(map_shards.time, "monotonic", lambda: float(next(clock)))
    caplog.set_level(logging.INFO, logger=map_shards.__name__)
    return caplog


def test_a_line_reports_shards_bytes_documents_a_second_and_the_time_left(told: pytest.LogCaptureFixture) -> None:
    progress = Progress("judge", [3_000_000, 1_000_000, 4_000_000], [])
    progress.advance(0, {"documents": 500})
    progress.advance(1, {"documents": 500})
    assert told.messages == [
        "judge: 1 of 3 shards, 3.0 of 8.0 MB, 50 documents/s, 17 s left",
        "judge: 2 of 3 shards, 4.0 of 8.0 MB, 50 documents/s, 20 s left",
    ]


def test_what_was_finished_before_is_reported_and_is_no_part_of_the_rate(told: pytest.LogCaptureFixture) -> None:
    progress = Progress("judge", [2_000_000_000] * 4, [0, 1])
    progress.advance(2, {"documents": 1000})
    assert told.messages == [
        "judge: 2 of 4 shards were finished before",
        "judge: 3 of 4 shards, 6.0 of 8.0 GB, 100 documents/s, 10 s left",
    ]


def test_without_sizes_and_documents_it_reports_shards_a_second(told: pytest.LogCaptureFixture) -> None:
    Progress("render", [0, 0], []).advance(0, {"files": 1})
    assert told.messages == ["render: 1 of 2 shards, 0.10 shards/s, 10 s left"]


def test_the_last_line_comes_however_quick_it_was(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_shards.time, "monotonic", lambda: 5.0)
    caplog.set_level(logging.INFO, logger=map_shards.__name__)
    progress = Progress("copy", [10, 10], [])
    progress.advance(1, {})
    assert caplog.messages == []
    progress.advance(0, {})
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("copy: 2 of 2 shards, 0.0 of 0.0 kB")

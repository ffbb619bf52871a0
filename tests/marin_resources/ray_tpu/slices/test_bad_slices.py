"""A slice whose host could not use its devices is told to who keeps the slices, and is bad when that happens again."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from marin_resources.ray_tpu.slices.bad_slices import AGAIN_S, VARIABLE, bad_slices, report_bad_slice


@pytest.fixture
def folder(disk_or_gcs_prefix: str, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = f"{disk_or_gcs_prefix}/.marin/clusters/c-bad"
    monkeypatch.setenv(VARIABLE, folder)
    return folder


def test_a_slice_is_bad_when_it_is_reported_again_later(folder: str) -> None:
    report_bad_slice("a", "libtpu: the chip is in use", now=1000.0)
    report_bad_slice("a", "libtpu: the chip is in use", now=1000.0 + AGAIN_S - 1)  # of one process that ends slowly
    report_bad_slice("b", "a chip does not answer", now=1000.0)
    assert bad_slices(folder, ["a", "b", "never-reported"]) == {}
    report_bad_slice("b", "a chip does not answer", now=1000.0 + AGAIN_S)
    assert bad_slices(folder, ["a", "b"]) == {"b": "bad host: a chip does not answer"}
    assert bad_slices(folder, ["a"]) == {}


def test_without_a_folder_nobody_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    report_bad_slice("a", "why")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_away_is_logged_and_the_step_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from marin_resources.ray_tpu.slices import bad_slices as module
    from marin_resources.storage.control.protocol import UnavailableError

    def away(path: str) -> None:
        raise UnavailableError("no answer")

    monkeypatch.setenv(VARIABLE, "gs://away/x")
    monkeypatch.setattr(module, "read", away)
    with caplog.at_level(logging.WARNING):
        report_bad_slice("a", "why")
    assert "The slice 'a' cannot be reported as bad: no answer" in caplog.text

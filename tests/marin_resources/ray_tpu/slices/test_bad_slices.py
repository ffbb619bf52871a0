"""A slice whose host could not use its devices is reported, and is bad when another step reports it too."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from marin_resources.ray_tpu.slices.bad_slices import AGAIN_S, VARIABLE, WITHIN_S, bad_slices, report_bad_slice
from marin_resources.storage.control.control import read, write


@pytest.fixture
def folder(disk_or_gcs_prefix: str, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = f"{disk_or_gcs_prefix}/.marin/clusters/c-bad"
    monkeypatch.setenv(VARIABLE, folder)
    return folder


def report(name: str, step: str, now: float) -> None:
    report_bad_slice(name, "a chip does not answer", step, now=now)


def test_a_slice_is_bad_when_two_different_steps_report_it_within_hours(folder: str) -> None:
    for name, step, now in [
        ("ends-slowly", "train/a", 0.0),
        ("ends-slowly", "train/b", AGAIN_S - 1),  # of one process that ends slowly
        ("one-step", "train/a", 0.0),
        ("one-step", "train/a", 3600.0),  # its own fault
        ("bad", "train/a", 0.0),
        ("bad", "train/b", 3600.0),
        ("weeks-apart", "train/a", 3600.0 - 7 * 86400),
        ("weeks-apart", "train/b", 3600.0),
    ]:
        report(name, step, now)
    names = ["ends-slowly", "one-step", "bad", "weeks-apart", "never-reported"]
    assert bad_slices(folder, names, now=3600.0) == {"bad": "bad host: a chip does not answer"}
    assert bad_slices(folder, ["one-step"], now=3600.0) == {}
    assert bad_slices(folder, names, now=3600.0 + WITHIN_S) == {}  # a monitor that was away judges nothing old


def test_reports_of_an_earlier_version_and_damaged_ones_replace_no_slice(
    folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    old = {"format": 1, "first": 0.0, "last": 1800.0, "why": "no step was reported for 3 s"}
    for name, text in [
        ("old", json.dumps(old)),
        ("damaged", "{"),
        ("a-list", "[]"),
        ("odd", '{"reports": [{"at": 1}]}'),
    ]:
        write(f"{folder}/{name}.json", text.encode(), expected=None)
    assert bad_slices(folder, ["old", "damaged", "a-list", "odd"], now=1800.0) == {}
    assert "damaged.json' are damaged" in caplog.text
    report("damaged", "train/a", 1800.0)
    report("damaged", "train/b", 3600.0)
    assert list(bad_slices(folder, ["damaged"], now=3600.0)) == ["damaged"]


def test_a_slice_that_is_reported_for_ever_has_a_short_file(folder: str) -> None:
    for number in range(100):
        report("a", "train/a", float(number))
    found = read(f"{folder}/a.json")
    assert found is not None
    fields = json.loads(found.data)
    assert (fields["first"], fields["last"], len(fields["reports"])) == (0.0, 99.0, 20)


def test_without_a_folder_nobody_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    report_bad_slice("a", "why", "train/a")
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
        report_bad_slice("a", "why", "train/a")
    assert "The slice 'a' cannot be reported as bad: no answer" in caplog.text

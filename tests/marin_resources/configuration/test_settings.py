from __future__ import annotations

import os
from pathlib import Path

import pytest

from marin_resources.configuration.settings import (
    SettingError,
    default_prefix,
    ensure_dagster_home,
    normalize_prefix,
    project_root,
)


def test_the_root_is_the_checkout() -> None:
    assert (project_root() / "pyproject.toml").exists()
    assert (project_root() / "marin_resources" / "configuration" / "settings.py").exists()


def test_without_a_variable_the_prefix_is_in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARIN_PREFIX", raising=False)
    assert default_prefix() == str(project_root() / "outputs")


def test_a_relative_prefix_is_resolved_once_for_all_child_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MARIN_PREFIX", "out/puts")
    assert default_prefix() == os.environ["MARIN_PREFIX"] == str(tmp_path / "out/puts")
    monkeypatch.chdir("/")
    assert default_prefix() == str(tmp_path / "out/puts")


@pytest.mark.parametrize(
    ("prefix", "normal"),
    [
        ("/a/b/", "/a/b"),
        ("/a/../b", "/b"),
        ("file:///a/b/", "/a/b"),
        ("gs://bucket/path/", "gs://bucket/path"),
        ("gs://bucket", "gs://bucket"),
        ("s3://bucket/a//", "s3://bucket/a"),
        ("GS://bucket/Path", "gs://bucket/Path"),
        ("FILE:///a/b", "/a/b"),
        ("//a//b", "/a/b"),
        (" gs://bucket/path ", "gs://bucket/path"),
    ],
)
def test_a_prefix_is_absolute_and_without_a_trailing_slash(prefix: str, normal: str) -> None:
    assert normalize_prefix(prefix) == normal


def test_a_tilde_is_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert normalize_prefix("~/out") == str(tmp_path / "out")


@pytest.mark.parametrize(
    ("prefix", "sentence"),
    [
        ("", "The prefix is empty"),
        ("gs:/bucket/x", "The prefix 'gs:/bucket/x' is no URL.* Use 'gs://bucket/x'"),
        ("S3:bucket", "is no URL.* Use 's3://bucket'"),
        ("file:/a/b", "is no URL.* Use 'file:///a/b'"),
        ("gs:///bucket/x", "names no bucket"),
        ("  ", "The prefix is empty"),
        ("gss://bucket/x", "has the unknown scheme 'gss'"),
        ("gs://", "names no bucket"),
        (__file__, "is a file"),
    ],
)
def test_what_cannot_be_a_prefix_is_refused_in_one_sentence(prefix: str, sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        normalize_prefix(prefix)


def test_dagsters_home_is_created_and_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", "home/of/dagster")
    assert ensure_dagster_home() == os.environ["DAGSTER_HOME"] == str(tmp_path / "home/of/dagster")
    assert (tmp_path / "home/of/dagster").is_dir()


def test_an_unused_home_gets_the_projects_settings_and_a_used_one_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))  # as a process leaves it that is killed after it made the folder
    ensure_dagster_home()
    project = (project_root() / ".dagster/dagster.yaml").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["dagster.yaml"]
    assert (tmp_path / "dagster.yaml").read_text() == project
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    ensure_dagster_home()
    assert (tmp_path / "dagster.yaml").read_text() == "telemetry: {enabled: false}\n"
    (tmp_path / "dagster.yaml").unlink()
    (tmp_path / "history").mkdir()
    ensure_dagster_home()
    assert [path.name for path in tmp_path.iterdir()] == ["history"]


def test_a_tilde_in_dagsters_home_is_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", "~/x")
    assert ensure_dagster_home() == str(tmp_path / "x")


@pytest.mark.parametrize("below", ["", "/home"])
def test_dagsters_home_at_or_below_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DAGSTER_HOME", f"{tmp_path}/file{below}")
    with pytest.raises(SettingError, match=f"DAGSTER_HOME is '{tmp_path}/file{below}', and there is a file. Set it to"):
        ensure_dagster_home()

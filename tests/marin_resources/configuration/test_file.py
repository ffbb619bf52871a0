"""The file with settings: the environment comes before it, and it before the default. A mistake is one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dagster_homes import laptop_home, new_home
from running import ROOT

from marin_resources.configuration.check import load_settings
from marin_resources.configuration.file import load_file, source_of
from marin_resources.configuration.settings import SettingError, default_prefix
from marin_resources.storage.lease.text import ttl_s

BIN = Path(sys.executable).parent


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that MARIN_CONFIG names."""
    path = tmp_path / "settings.toml"
    path.touch(mode=0o640)
    monkeypatch.setenv("MARIN_CONFIG", str(path))
    return path


def test_the_environment_comes_before_the_file_and_the_file_before_the_default(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ttl_s() == 90
    file.write_text("lease_ttl_s = 60\nmirror_budget_gb = 3\n")
    monkeypatch.setenv("MARIN_MIRROR_BUDGET_GB", "5")
    load_settings()
    assert ttl_s() == 60
    assert os.environ["MARIN_MIRROR_BUDGET_GB"] == "5"
    assert [source_of(name) for name in ("MARIN_LEASE_TTL_S", "MARIN_MIRROR_BUDGET_GB", "MARIN_REGION")] == [
        str(file),
        "environment",
        None,
    ]


def test_what_is_removed_from_the_file_has_its_default_again(file: Path) -> None:
    file.write_text("lease_ttl_s = 60\n")
    load_settings()
    file.write_text("")
    load_settings()
    assert ttl_s() == 90


def test_without_a_name_it_is_in_the_home_of_dagster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "marin.toml").write_text('prefix = "outputs"\n')
    monkeypatch.delenv("MARIN_CONFIG")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    load_settings()
    assert default_prefix() == str(tmp_path / "outputs"), "a relative path is relative to the file"
    assert source_of("MARIN_PREFIX") == str(tmp_path / "marin.toml")
    monkeypatch.setenv("MARIN_CONFIG", "")
    load_settings()
    assert source_of("MARIN_PREFIX") is None, "MARIN_CONFIG= is no file at all"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lease_ttl = 60", "has the key 'lease_ttl', which is no setting. Did you mean lease_ttl_s?"),
        ("MARIN_PREFIX = 'x'", "has the key 'MARIN_PREFIX', which is no setting. Did you mean prefix?"),
        ("zzz = 'red'", "has the key 'zzz', which is no setting. Remove it; docs/reference/configuration.md"),
        ("config = 'x'", "has the key 'config', which is no setting. Name the file in the environment, as MARIN_CONF"),
        ("lease_ttl_s = '60'", "has lease_ttl_s = '60', expected a number."),
        ("lease_ttl_s = -1", "MARIN_LEASE_TTL_S is '-1', expected seconds above 0. It is lease_ttl_s in '"),
        ("log_format = 'xml'", "MARIN_LOG_FORMAT is 'xml', expected one of 'text', 'json'. It is log_format in '"),
        ("cluster = 'head'", "MARIN_CLUSTER is 'head', expected 'local' or the dashboard's URL"),
        ("prefix = 'nowhere://x'", "has the unknown scheme 'nowhere'. Use a folder, or a URL such as gs://bucket/p"),
        ("prefix = ", "cannot be read (Invalid value (at end of document))"),
    ],
)
def test_a_mistake_is_one_sentence(file: Path, text: str, sentence: str) -> None:
    file.write_text(text)
    with pytest.raises(SettingError) as raised:
        load_settings()
    assert sentence in str(raised.value)
    assert str(file) in str(raised.value)


def test_a_file_that_is_named_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(SettingError, match=r"MARIN_CONFIG is .*none.toml', which is no file"):
        load_settings()


def test_a_secret_is_in_no_file_that_others_may_read_and_in_no_sentence(file: Path) -> None:
    file.write_text('postgres_url = "postgresql://marin:hunter2@127.0.0.1/marin"\n')
    file.chmod(0o644)
    with pytest.raises(SettingError, match=r"a secret, and other users may read it \(mode 0644\)") as open_:
        load_settings()
    file.chmod(0o640)
    load_settings()
    assert os.environ["MARIN_POSTGRES_URL"].endswith("@127.0.0.1/marin")
    file.write_text('webhook_url = "hunter2"\n')
    with pytest.raises(SettingError, match=r"MARIN_WEBHOOK_URL is not shown here") as wrong:
        load_settings()
    file.write_text("webhook_url = [1, 2]\n")
    with pytest.raises(SettingError, match="has webhook_url = of another kind") as other:
        load_file()
    assert "hunter2" not in f"{open_.value} {wrong.value} {other.value}"


COMMANDS = {
    "marin": [str(BIN / "marin"), "list"],
    "a process of Dagster": [str(BIN / "dagster"), "instance", "info"],
    "the webserver": [str(BIN / "marin-webserver"), "--version"],
    "the code location": [sys.executable, "-c", "import marin_assets.definitions"],
    "a script": [sys.executable, "-m", "marin_assets.experiments.two_steps", "--dry-run"],
}


LONG = ("a process of Dagster", "the code location")
CASES = [
    pytest.param(command, id=name, marks=[pytest.mark.long] if name in LONG else [])
    for name, command in COMMANDS.items()
]


@pytest.mark.parametrize("command", CASES)
def test_every_entry_point_refuses_a_mistake_with_one_sentence_and_exit_code_2(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = laptop_home(tmp_path / "home")
    (home / "marin.toml").write_text("lease_ttl_s = 0\n")
    monkeypatch.delenv("MARIN_CONFIG")
    env = {**os.environ, "DAGSTER_HOME": str(home)}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    assert ended.returncode == 2, ended.stderr
    told = f"MARIN_LEASE_TTL_S is '0', expected seconds above 0. It is lease_ttl_s in '{home}/marin.toml'.\n"
    assert ended.stderr == told


def test_a_process_of_dagster_has_the_file_before_it_reads_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dagster.yaml` names variables: a daemon, a webserver and a run get them from the file."""
    home = new_home(tmp_path / "home")
    (home / "dagster.yaml").write_text(
        "telemetry: {enabled: false}\n"
        "compute_logs:\n"
        "  module: marin_resources.dagster_fixes.compute_logs.manager\n"
        "  class: StoredComputeLogManager\n"
        "  config: {prefix: {env: MARIN_PREFIX}}\n"
    )
    (home / "marin.toml").write_text('prefix = "gs://bucket/outputs"\n')
    monkeypatch.delenv("MARIN_CONFIG")
    code = (
        "import os\n"
        "from dagster._core.instance.ref import InstanceRef\n"
        "print(InstanceRef.from_dir(os.environ['DAGSTER_HOME']).compute_log_manager.url)\n"
        "print(os.environ['MARIN_PREFIX'])"
    )
    env = {**os.environ, "DAGSTER_HOME": str(home)}
    ended = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["gs://bucket/outputs/.marin/logs", "gs://bucket/outputs"]

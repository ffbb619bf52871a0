"""The table of settings has each variable that is read, with the kind of value that its reader takes."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from marin_resources.configuration.check import check_settings, load_settings
from marin_resources.configuration.settings import SettingError, project_root
from marin_resources.configuration.table import BY_NAME, SETTINGS, Setting
from marin_resources.doctor.variables import INTERNAL

ROOT = project_root()
SAMPLES: dict[str, tuple[str, str, str]] = {
    "MARIN_PREFIX": ('"gs://bucket/path"', "gs://bucket/path", "nowhere://x"),
    "MARIN_EXPERIMENTS": (
        '["marin_assets.experiments", "marin_assets.stages"]',
        "marin_assets.experiments,marin_assets.stages",
        "marin_assets.experimets",
    ),
    "MARIN_SENSORS": ('["marin_sensors.deployed"]', "marin_sensors.deployed", "marin_sensors/deployed"),
    "MARIN_LEASE_TTL_S": ("60", "60", "soon"),
    "MARIN_MIRROR_PREFIXES": (
        '{us = "gs://a/x", eu = "gs://b/x"}\nprefix = "gs://a/x"',
        "us=gs://a/x,eu=gs://b/x",
        "gs://a",
    ),
    "MARIN_REGION": (
        '"us"\nmirror_prefixes = {us = "gs://a/x"}\nprefix = "gs://a/x"',
        "us",
        "",
    ),
    "MARIN_MIRROR_BUDGET_GB": ("2.5", "2.5", "much"),
    "MARIN_FOREIGN_BUCKETS": ('"commoncrawl"', "commoncrawl", "gs://commoncrawl/crawl-data"),
    "MARIN_MIRROR_PRICES": (
        '{"us>eu" = 0.05}\nmirror_prefixes = {us = "gs://a/x", eu = "gs://b/x"}\nprefix = "gs://a/x"',
        "us>eu=0.05",
        "",
    ),
    "MARIN_DEVICE_PRICES": ('{v5p = "4.2@2026-11-01"}', "v5p=4.2@2026-11-01", "v5p"),
    "MARIN_CONTACT": ('"you@example.org"', "you@example.org", "you"),
    "MARIN_WEBHOOK_URL": ('"https://hooks.example.org/x"', "https://hooks.example.org/x", "hooks"),
    "MARIN_UI_URL": ('"https://marin.example.org"', "https://marin.example.org", "marin.example.org"),
    "MARIN_BROWSE_URL": ('"https://browse.example.org"', "https://browse.example.org", "https://example.org/browse"),
    "MARIN_BROWSE_PREFIXES": ('["gs://a/x", "gs://b/y"]', "gs://a/x,gs://b/y", "gs://a/x,nowhere://y"),
    "MARIN_LOG_FORMAT": ('"json"', "json", "xml"),
    "MARIN_POSTGRES_URL": ('"postgresql://a:b@h/d"', "postgresql://a:b@h/d", "mysql://a:b@h/d"),
    "MARIN_CLUSTER": ('"http://head:8265"', "http://head:8265", "head:8265"),
    "MARIN_CLUSTER_TOKEN_SECRET": ('"projects/p/secrets/s"', "projects/p/secrets/s", "s"),
    "MARIN_CLUSTER_CODE": ('"image"', "image", "docker"),
    "MARIN_CLUSTER_WORKING_DIR": ('"/tmp"', "/tmp", "/nowhere"),
    "MARIN_CLUSTER_IMAGE_ROOT": ('"/app"', "/app", "app"),
    "MARIN_CLUSTER_ENVIRONMENTS": (
        '{"/opt/bin/python" = ["train", "evaluate"]}',
        "/opt/bin/python=train+evaluate",
        "python",
    ),
    "MARIN_CLUSTER_START_TIMEOUT_S": ("30", "30", "-1"),
    "MARIN_CLUSTERS": (f'"{ROOT}/infra/clusters.toml"', f"{ROOT}/infra/clusters.toml", "/nowhere.toml"),
    "MARIN_CLUSTER_NODE_TYPES": ("[{CPU = 96}]", '[{"CPU": 96}]', "96"),
    "MARIN_CLUSTER_OUTAGE_TIMEOUT_S": ("30.5", "30.5", "long"),
    "MARIN_STATE_DIR": ('"state"', "", ""),
    "MARIN_SECRETS_DIR": ('"/run/secrets"', "/run/secrets", ""),
    "MARIN_SECRETS_PROJECT": ('"a-project"', "a-project", ""),
    "MARIN_SECRET_MANAGER_URL": ('"http://127.0.0.1:1"', "http://127.0.0.1:1", "127.0.0.1"),
    "MARIN_FAKE_TPU": ("true", "1", ""),
    "MARIN_PACKAGES_DIR": ('"/tmp/packages"', "/tmp/packages", ""),
    "MARIN_TORCH_PYTHON": ('"/opt/torch/bin/python"', "/opt/torch/bin/python", ""),
    "MARIN_VLLM_PYTHON": ('"/opt/vllm/bin/python"', "/opt/vllm/bin/python", ""),
    "MARIN_INSPECT_PYTHON": ('"/opt/inspect/bin/python"', "/opt/inspect/bin/python", ""),
    "RAY_AUTH_MODE": ('"token"', "token", "yes"),
    "RAY_AUTH_TOKEN_PATH": ('"/etc/token"', "/etc/token", ""),
}
"""Variable -> a value in a file, the same in the environment, and a value that its reader refuses ("": none is)."""
IN_FILE = [setting for setting in SETTINGS if setting.in_file]


def test_every_variable_that_is_read_is_known_and_documented() -> None:
    reference = (ROOT / "docs/reference/configuration.md").read_text()
    rows = {
        name
        for row in re.findall(r"^\| (`[A-Z_`, ]+`) \|", reference, re.M)
        for name in re.findall(r"`([A-Z_]+)`", row)
    }
    assert {name for name in rows if name.startswith("MARIN_")} == {n for n in BY_NAME if n.startswith("MARIN_")}
    assert set(BY_NAME) <= rows
    code = [
        path for package in ("assets", "resources", "sensors") for path in (ROOT / f"marin_{package}").rglob("*.py")
    ]
    read = {name for path in code for name in re.findall(r"\bMARIN_[A-Z_]*[A-Z]\b", path.read_text())}
    assert read - {"MARIN_PREFIXES"} <= set(BY_NAME) | INTERNAL


def test_there_is_a_sample_of_each() -> None:
    assert set(SAMPLES) == {setting.name for setting in IN_FILE}


@pytest.mark.parametrize("setting", IN_FILE, ids=lambda setting: setting.name)
def test_a_value_in_the_file_is_one_that_the_reader_takes(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file, as_variable, _ = SAMPLES[setting.name]
    file = tmp_path / "marin.toml"
    file.write_text(f"{setting.key} = {in_file}\n")
    file.chmod(0o640)
    monkeypatch.setenv("MARIN_CONFIG", str(file))
    load_settings()
    assert os.environ[setting.name] == (as_variable or str(tmp_path / tomllib.loads(file.read_text())[setting.key]))


@pytest.mark.parametrize("setting", [one for one in IN_FILE if SAMPLES[one.name][2]], ids=lambda one: one.name)
def test_a_value_that_its_reader_refuses_is_refused_at_the_start(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = SAMPLES[setting.name][2]
    monkeypatch.setenv(setting.name, bad)
    with pytest.raises(SettingError) as raised:
        check_settings()
    sentence = str(raised.value)
    assert setting.name in sentence or "prefix" in sentence
    assert not setting.secret or bad not in sentence


@pytest.mark.parametrize("setting", IN_FILE, ids=lambda setting: setting.name)
def test_a_value_of_another_kind_is_one_sentence(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "marin.toml"
    file.write_text(f"{setting.key} = 2026-11-25\n")  # a date, which no setting is
    file.chmod(0o640)
    monkeypatch.setenv("MARIN_CONFIG", str(file))
    with pytest.raises(SettingError, match=f"marin.toml' has {setting.key} = .*, expected .*\\.$"):
        load_settings()

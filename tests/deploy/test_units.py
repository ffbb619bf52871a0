"""The systemd units of deploy/vm: valid, sandboxed, and their commands are ones that this project has."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from running import ROOT

VM = ROOT / "deploy/vm"
SERVICES = sorted((VM / "systemd").glob("*.service"))
MOST_EXPOSED = 2.0
"""Of systemd's scale from 0 to 10, where a service without a sandbox has 9.6."""


def command(unit: Path) -> list[str]:
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.read(unit)
    return shlex.split(parsed["Service"]["ExecStart"])


def test_the_target_starts_every_service_but_that_of_a_cluster() -> None:
    target = (VM / "systemd/marin.target").read_text()
    assert [unit.name for unit in SERVICES if unit.name not in target] == ["marin-slices@.service"]
    assert len(SERVICES) == 7


@pytest.mark.long
@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_the_command_of_a_service_is_one_that_is_installed_and_takes_these_options(unit: Path) -> None:
    program, *arguments = command(unit)
    here = Path(sys.executable).with_name(Path(program).name)
    assert program == f"/opt/marin/.venv/bin/{here.name}"
    verbs = [argument for argument in arguments[:2] if not argument.startswith("-")]
    told = subprocess.run([here, *verbs, "--help"], capture_output=True, text=True, check=True).stdout
    options = [argument for argument in arguments if argument.startswith("-")]
    assert [option for option in options if option not in told] == []


def test_the_services_share_one_code_location() -> None:
    workspace = yaml.safe_load((VM / "workspace.yaml").read_text())
    [server] = [one["grpc_server"] for one in workspace["load_from"]]
    code = command(VM / "systemd/marin-code.service")
    assert code[code.index("--socket") + 1] == server["socket"]
    assert code[code.index("--location-name") + 1] == server["location_name"]
    for name in ("daemon", "webserver", "readonly"):
        assert command(VM / f"systemd/marin-{name}.service")[-1] == "/opt/marin/deploy/vm/workspace.yaml"


def test_the_example_of_the_settings_names_only_what_is_read() -> None:
    from marin_resources.doctor.variables import unread

    lines = [line for line in (VM / "marin.env").read_text().splitlines() if line and not line.startswith("#")]
    environ = dict(line.split("=", 1) for line in lines)
    assert list(unread(environ)) == []
    assert "MARIN_POSTGRES_URL" in environ


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_systemd_finds_no_mistake_and_a_closed_sandbox(unit: Path, tmp_path: Path) -> None:
    shutil.copytree(VM / "systemd", tmp_path, dirs_exist_ok=True)
    name = unit.name.replace("@.", "@us-central2.")  # of a template, one instance
    (tmp_path / unit.name).rename(tmp_path / name)
    env = {"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin"}
    place = str(tmp_path / name)
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", place], env=env, capture_output=True, text=True)
    mistakes = [
        line for line in verified.stderr.splitlines() if "is not executable" not in line
    ]  # /opt/marin is not here
    assert mistakes == []
    looked = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", place], env=env, capture_output=True, text=True
    )
    [overall] = [line for line in looked.stdout.splitlines() if "Overall exposure level" in line]
    assert float(overall.split(":")[1].split()[0]) <= MOST_EXPOSED


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None or os.geteuid() != 0, reason="it needs systemd, and root")
def test_the_services_temporary_folder_is_emptied_at_a_boot_alone(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("marin:x:123:124::/var/lib/marin:/usr/sbin/nologin\n")
    (tmp_path / "etc/group").write_text("marin:x:124:\n")
    folder = tmp_path / "var/lib/marin/tmp"
    (folder / "left").mkdir(parents=True)
    command = ["systemd-tmpfiles", f"--root={tmp_path}", "--create", str(VM / "tmpfiles.conf")]
    for options, left in (([], ["left"]), (["--clean"], ["left"]), (["--remove", "--boot"], [])):
        subprocess.run([*command, *options], check=True)
        assert [each.name for each in folder.iterdir()] == left, options
    assert (folder.stat().st_uid, folder.stat().st_gid, folder.stat().st_mode & 0o777) == (123, 124, 0o700)

"""The units of deploy/vm on a systemd that is really booted: what a restart of the code location leaves of a run, and
what the data browser may do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from booted_systemd import BootedSystemd, booted_systemd
from running import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

CODE_SERVER = """#!/usr/bin/python3 -IS
import os, sys, time
STATE = "/var/lib/marin/"

def has(name):
    return os.path.exists(STATE + name)

if not has("started"):
    if os.fork() == 0:
        sys.path.insert(0, "/opt/marin")
        import run
        os._exit(0)
open(STATE + "started", "a").write("again\\n")
time.sleep(10**6)
"""
RUN = """
import os, sys, tempfile, time
STATE = "/var/lib/marin/"
kept = tempfile.NamedTemporaryFile(mode="w", prefix="kept-")
kept.write("data")
kept.flush()
open("/tmp/by-its-path", "w").close()
open("/dev/shm/marin-test-shared", "w").close()
open(STATE + "run", "w").write(kept.name)
while not os.path.exists(STATE + "go-on"):
    time.sleep(0.02)
said = []
try:
    said.append(open(kept.name).read())
    said.append(str(os.path.exists("/tmp/by-its-path")))
    said.append(str(os.path.exists("/dev/shm/marin-test-shared")))
    with tempfile.SpooledTemporaryFile(max_size=8 << 20) as spool:
        spool.write(b"x" * (9 << 20))
    said.append("spooled")
except BaseException as error:
    said.append(repr(error))
open(STATE + "said.new", "w").write(" ".join(said))
os.rename(STATE + "said.new", STATE + "said")
"""
ATTEMPTS = """#!/usr/bin/python3 -IS
import json, os, socket, tempfile
did = {}
for folder in ("/var/lib/marin", "/var/cache/marin", "/tmp", "/opt/marin", "/dev/shm"):
    try:
        open(folder + "/written", "w").close()
        did[folder] = "written"
        if folder == "/dev/shm":
            os.unlink(folder + "/written")
    except OSError as error:
        did[folder] = "refused"
for name, family in (("file", socket.AF_UNIX), ("network", socket.AF_INET)):
    try:
        socket.socket(family).close()
        did[name] = "opened"
    except OSError:
        did[name] = "refused"
socket.socketpair()  # of asyncio
did["variables"] = sorted(name for name in os.environ if name.startswith(("MARIN_", "RAY_")))
print(json.dumps(did), flush=True)
"""
SETTINGS = """
[Service]
User=nobody
Group=nogroup
ProtectHome=no
ExecStart=
ExecStart=/opt/marin/code_server
"""
"""After common.conf by its name: what is not on this machine."""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[BootedSystemd]:
    tmp_path.chmod(0o755)
    for folder in ("var/lib", "var/cache", "var/tmp", "opt/marin", "units/marin-.service.d"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "var/run").symlink_to("/run")
    (tmp_path / "opt/marin/run.py").write_text(RUN)
    server = tmp_path / "opt/marin/code_server"
    server.write_text(CODE_SERVER)
    server.chmod(0o755)
    (tmp_path / "opt/marin/marin.env").touch()
    settings = f"{SETTINGS}EnvironmentFile=\nEnvironmentFile=/opt/marin/marin.env\n"
    (tmp_path / "units/marin-.service.d/of-this-machine.conf").write_text(settings)
    with booted_systemd(tmp_path) as machine:
        yield machine


@pytest.mark.parametrize("restarted", [("marin-code",), ("marin.target",)], ids=" ".join)
def test_a_run_keeps_its_temporary_files_when_its_code_server_is_restarted(
    machine: BootedSystemd, restarted: tuple[str, ...]
) -> None:
    state = machine.root / "var/lib/marin"
    machine.systemctl("start", "marin-code")
    wait_until((state / "run").exists, "the run has begun")
    machine.systemctl("restart", *restarted)
    wait_until(lambda: (state / "started").read_text().count("again") >= 2, "the next code server has begun")
    (state / "go-on").touch()
    wait_until((state / "said").exists, "the run has ended")
    assert (state / "said").read_text() == "data True True spooled"
    assert not os.path.exists((state / "run").read_text()), "the machine's own /tmp is not theirs"
    assert (state / "tmp").stat().st_mode & 0o077 == 0


VARIABLES = ("MARIN_PREFIX", "MARIN_POSTGRES_URL", "RAY_AUTH_TOKEN_PATH")


def test_the_data_browser_may_write_nowhere_and_ask_no_socket_of_a_file_as_its_peers_may(
    machine: BootedSystemd,
) -> None:
    folder = machine.root / "opt/marin"
    (folder / "marin.env").write_text("".join(f"{name}=x\n" for name in VARIABLES))
    (folder / "attempts").write_text(ATTEMPTS)
    (folder / "attempts").chmod(0o755)
    did = {}
    for name in ("browse", "metrics"):
        own = machine.root / f"units/marin-{name}.service.d"
        own.mkdir(exist_ok=True)
        said = folder / f"{name}.said"
        program = f"ExecStart=\nExecStart=/opt/marin/attempts\nStandardOutput=file:{said.relative_to(machine.root)}"
        (own / "program.conf").write_text(f"[Service]\n{program.replace('file:', 'file:/')}\nRestart=no\n")
        machine.systemctl("daemon-reload")
        machine.systemctl("start", f"marin-{name}")
        wait_until(lambda said=said: said.exists() and said.read_text().endswith("\n"), "it has tried all")
        did[name] = json.loads(said.read_text())
        assert (machine.root / "var/lib/marin/tmp/written").exists() == (name == "metrics")
    assert did["metrics"]["variables"] == sorted(VARIABLES)
    assert did["metrics"]["/var/lib/marin"] == did["metrics"]["/tmp"] == "written"
    assert did["metrics"]["file"] == "opened"
    assert did["browse"].pop("variables") == ["MARIN_PREFIX"]
    assert did["browse"].pop("network") == "opened"
    assert did["browse"].pop("/tmp") == "written", "in one of its own"
    assert did["browse"] == dict.fromkeys(did["browse"], "refused")

"""A systemd that is really booted, with the units of deploy/vm: in namespaces of its own, and in a cgroup below ours.

The machine's own folders below /run, /var and /tmp are hidden from it; it has those of `root`. Needs root and Linux
with a cgroup hierarchy that may be mounted.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from running import ROOT, wait_until

SYSTEMD = Path("/lib/systemd/systemd")
BOOT = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /sys/fs/cgroup
mkdir /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/systemd
mkdir /sys/fs/cgroup/systemd/{name}
echo $$ > /sys/fs/cgroup/systemd/{name}/cgroup.procs
exec unshare --fork --pid --mount --cgroup --uts --ipc --mount-proc sh -c '
  set -e
  umount /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/systemd
  mount -t tmpfs tmpfs /run
  mkdir /run/lock
  mount --bind {root}/var /var
  mount --bind {root}/opt /opt
  container=test SYSTEMD_UNIT_PATH={root}/units exec {systemd} --system --log-target=console --unit=default.target
'
"""
REMOVE = """
mount --make-rprivate /
mkdir -p {root}/cgroup
mount -t cgroup -o none,name=systemd systemd {root}/cgroup
for each in $(seq 100); do
  find {root}/cgroup/{name} -depth -type d -exec rmdir {{}} \\; 2>/dev/null
  [ -e {root}/cgroup/{name} ] || break
  sleep 0.1  # its processes are dying
done
"""
TARGETS = ("default", "sysinit", "basic", "shutdown", "network-online")
"""What units of services ask for. They are empty here: the services of the units' folder are all that is started."""


class BootedSystemd:
    def __init__(self, root: Path, pid: int) -> None:
        self.root, self.pid = root, pid

    def systemctl(self, *arguments: str) -> str:
        command = ["nsenter", "-t", str(self.pid), "-p", "-m", "-C", "-u", "-i", "systemctl", *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def is_up(self) -> bool:
        try:
            return "default.target" in self.systemctl("list-units", "--state=active")
        except AssertionError:
            return False


@contextmanager
def booted_systemd(root: Path) -> Iterator[BootedSystemd]:
    """`root` has the folders `var` and `opt` that it sees, and gets `units`, a copy of those of deploy/vm."""
    if os.geteuid() != 0 or not SYSTEMD.exists() or shutil.which("nsenter") is None:
        pytest.skip("Booting systemd in namespaces needs root, systemd and util-linux.")
    shutil.copytree(ROOT / "deploy/vm/systemd", root / "units", dirs_exist_ok=True)
    for name in TARGETS:
        (root / f"units/{name}.target").write_text(f"[Unit]\nDescription={name}\n")
    place = {"name": f"marin-test-{secrets.token_hex(4)}", "root": root, "systemd": SYSTEMD}
    with open(root / "systemd.log", "wb") as log:
        command = ["unshare", "--mount", "sh", "-c", BOOT.format(**place)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        booted = BootedSystemd(root, _init_of(process, root))
        wait_until(booted.is_up, "systemd has booted")
        yield booted
    finally:
        for child in psutil.Process(process.pid).children():  # systemd, and with it all that it started
            child.kill()
        process.kill()
        process.wait()
        remove = ["unshare", "--mount", "sh", "-c", REMOVE.format(**place)]
        subprocess.run(remove, capture_output=True, check=False, timeout=60)


def _init_of(process: subprocess.Popen[bytes], root: Path) -> int:
    """The id of the process that became systemd."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.skip(f"systemd cannot be booted here: {(root / 'systemd.log').read_text()[-300:]}")
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(process.pid).children():
                if child.exe() == str(SYSTEMD.resolve()):
                    return child.pid
        time.sleep(0.02)
    raise TimeoutError("systemd did not start")

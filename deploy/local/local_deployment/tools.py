"""The deployment's packages of Debian and npm, installed by name where that needs no permission."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_deployment.layout import CHECKOUT, DeploymentError
from local_deployment.services import BIN

APACHE, OPENIDC = Path("/usr/sbin/apache2"), Path("/usr/lib/apache2/modules/mod_auth_openidc.so")
APT = Path("/var/lib/apt")
DEBIAN = ("apache2", "libapache2-mod-auth-openidc")


def install_tools(home: Path) -> None:
    """Raises DeploymentError."""
    if not _has_apache():
        _install_apache()
    install_provider(home)


def install_provider(home: Path) -> Path:
    """Return its folder. Raises DeploymentError."""
    provider = home / "provider"
    if not (provider / "node_modules/oidc-provider").exists():
        shutil.copytree(CHECKOUT / "deploy/local/provider", provider, dirs_exist_ok=True)
        _run([str(BIN / "npm"), "ci", "--no-fund", "--no-audit"], provider, "npm cannot install the login's provider")
    return provider


def _has_apache() -> bool:
    return APACHE.exists() and OPENIDC.exists()


def _install_apache() -> None:
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *DEBIAN]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise DeploymentError(
            f"The proxy is Apache 2.4 with mod_auth_openidc, and {str(OPENIDC)!r} does not exist. Install it, on "
            f"Debian and Ubuntu with: sudo {' '.join(command)}"
        )
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _one_at_a_time():
        if not _has_apache():  # another deployment's installation, while this one waited
            _run(["apt-get", "update"], Path("/"), "apt-get cannot read Debian's lists", quiet)
            _run(command, Path("/"), "apt-get cannot install Apache", quiet)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Among the deployments of the machine: `apt-get update` fails at once while another one runs."""
    folder = os.open(APT, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _run(command: list[str], folder: Path, problem: str, env: dict[str, str] | None = None) -> None:
    variables = {**(env or os.environ), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(
        command, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if ended.returncode != 0:
        tail = "\n".join(f"  {line}" for line in ended.stdout.splitlines()[-10:])
        raise DeploymentError(f"{problem}: `{' '.join(command)}` failed with code {ended.returncode}:\n{tail}")

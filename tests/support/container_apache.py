"""The Apache of the proxy's image, with the image's own configuration, on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from certificates import make_certificate
from running import ROOT, wait_until

from marin_resources.ray_tpu.cluster.local.head import free_ports

PROGRAM, OPENIDC = Path("/usr/sbin/apache2"), Path("/usr/lib/apache2/modules/mod_auth_openidc.so")

SECRETS = "OIDCClientSecret s\nOIDCCryptoPassphrase p\nDefine MARIN_BROWSE_PASSPHRASE p\n"


@dataclass(frozen=True, kw_only=True)
class ContainerApache:
    plain: int
    tls: int
    folder: Path
    """Has the files `access` and `errors`, and secrets/tls.crt."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.tls}"


def container_ports(folder: Path) -> ContainerApache:
    """Two free ports for an Apache of this folder, which is created."""
    folder.mkdir(exist_ok=True)
    plain, tls = free_ports(2)
    return ContainerApache(plain=plain, tls=tls, folder=folder)


@contextmanager
def container_apache(
    apache: ContainerApache,
    command: Sequence[str],
    names: Mapping[str, str],
    *,
    secrets_text: str = SECRETS,
    edit: Callable[[str], str] = str,
) -> Iterator[None]:
    """Run a container's command with the variables `names`; the files of the image are those of the checkout.

    `edit` changes the image's apache2.conf.
    """
    if not PROGRAM.exists() or not OPENIDC.exists():
        pytest.skip("Apache with mod_auth_openidc is not installed: apt install libapache2-mod-auth-openidc")
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    folder = apache.folder
    secrets = folder / "secrets"
    secrets.mkdir()
    (secrets / "proxy.conf").write_text(secrets_text)
    make_certificate(secrets / "tls.crt", secrets / "tls.key")
    (folder / "run").mkdir()
    text = edit((ROOT / "deploy/compose/proxy/apache2.conf").read_text())
    places = {
        "/run/secrets": str(secrets),
        "/run/apache2": str(folder / "run"),
        **{
            f"/etc/marin/{name}": str(ROOT / "deploy/proxy" / name)
            for name in ("login.conf", "marin.conf", "browse.conf")
        },
        "8080": str(apache.plain),
        "8443": str(apache.tls),
        "/etc/marin/log.sed": str(ROOT / "deploy/proxy/log.sed"),
        "/proc/self/fd/2": str(folder / "errors"),
    }
    for place, here in places.items():
        assert place in text
        text = text.replace(place, here)
    user = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
    (folder / "apache2.conf").write_text(user + text)
    replaced = [word.replace("/etc/marin", str(folder)) for word in command]
    with open(folder / "access", "wb") as access, open(folder / "startup", "wb") as startup:
        process = subprocess.Popen(replaced, env={**os.environ, **names}, stdout=access, stderr=startup)
    try:
        wait_until(lambda: listens(apache.tls) or process.poll() is not None, "Apache listens", timeout_s=20)
        assert process.poll() is None, "".join(
            (folder / name).read_text() for name in ("startup", "errors") if (folder / name).exists()
        )
        yield
    finally:
        process.terminate()
        process.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

"""The layout of a deployment: its folder, its ports, its secrets. All of it is chosen once, and kept."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from marin_resources.ray_tpu.cluster.local.head import free_ports
from marin_resources.storage.files import write_json

CHECKOUT = Path(__file__).parents[3]
EXPERIMENTS = CHECKOUT / "deploy/local/experiments"
EXPERIMENTS_VARIABLE = "MARIN_LOCAL_EXPERIMENTS"
ID_VARIABLE = "MARIN_LOCAL_DEPLOYMENT"
"""Environment variable of all processes of a deployment, with its id."""
PORTS = (
    "provider",
    "webserver",
    "read_only",
    "browse",
    "metrics",
    "postgres",
    "objects",
    "ray_gcs",
    "ray_dashboard",
    "ray_client",
)
SECRETS = ("postgres", "oidc_client", "oidc_cookies", "browse_cookies", "ray_token")
BROWSE_HOST = "browse.localhost"
BUCKET = DATABASE = "marin"
MARKER = ".marin-deployment"
"""A file in the folder of a deployment, from its first moment on: a folder without it is not removed."""


class DeploymentError(Exception):
    """One sentence: the problem, and the next action."""


@dataclass(frozen=True)
class Layout:
    home: Path
    id: str
    port: int
    """The port of the proxy, the only one for people."""
    ports: dict[str, int]
    experiments: Path
    """A folder of experiments that are loaded beside the project's."""

    @property
    def url(self) -> str:
        """The address of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def browse_url(self) -> str:
        """The address of the data browser: the proxy's port, by another name. Browsers resolve it to loopback."""
        return f"http://{BROWSE_HOST}:{self.port}"

    @property
    def provider_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['provider']}"

    @property
    def objects_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['objects']}"

    @property
    def postgres_folder(self) -> Path:
        """Postgres refuses to be root, and another user cannot enter a folder of root's."""
        return Path(f"/var/tmp/marin-postgres-{self.id}") if os.geteuid() == 0 else self.home / "postgres"

    @property
    def sessions_folder(self) -> Path:
        """The folder of logins. Apache's user cannot enter a folder of root's either."""
        return Path(f"/var/tmp/marin-sessions-{self.id}") if os.geteuid() == 0 else self.home / "sessions"

    @property
    def ray_folder(self) -> Path:
        """Short, as a socket's path has at most 107 bytes."""
        return Path(f"/tmp/marin-ray-{self.id}")

    @property
    def supervisor(self) -> Path:
        """Configuration of supervisord, which `supervisorctl -c` takes too."""
        return self.home / "supervisord.conf"

    def secret_path(self, name: str) -> Path:
        return self.home / "secrets" / name

    def secret(self, name: str) -> str:
        return self.secret_path(name).read_text()

    def environment(self) -> dict[str, str]:
        """The variables of all services, which /etc/marin/marin.env has on a team's machine."""
        postgres = f"dagster:{self.secret('postgres')}@127.0.0.1:{self.ports['postgres']}"
        return {
            ID_VARIABLE: self.id,
            EXPERIMENTS_VARIABLE: str(self.experiments),
            "DAGSTER_HOME": str(self.home / "dagster"),
            "MARIN_PREFIX": f"gs://{BUCKET}/outputs",
            "MARIN_POSTGRES_URL": f"postgresql://{postgres}/{DATABASE}",
            "MARIN_CLUSTER": f"http://127.0.0.1:{self.ports['ray_dashboard']}",
            "MARIN_UI_URL": self.url,
            "MARIN_BROWSE_URL": self.browse_url,
            "MARIN_LOG_FORMAT": "json",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.secret_path("ray_token")),
            # where Google's own storage would be
            "STORAGE_EMULATOR_HOST": self.objects_url,
            "TENSORSTORE_GCS_HTTP_URL": self.objects_url,
            "FSSPEC_GS_TOKEN": "anon",
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": "abc",
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        }


def layout_of(home: Path) -> Layout:
    """The layout of a deployment before it is made."""
    number = hashlib.sha256(str(home).encode()).hexdigest()[:8]
    return Layout(home, number, 0, dict.fromkeys(PORTS, 0), EXPERIMENTS)


def find_layout(home: Path) -> Layout | None:
    """The deployment of the folder, up or not; None if it has none. Raises DeploymentError if it cannot be read."""
    path = home / "layout.json"
    try:
        fields = json.loads(path.read_text())
        layout = Layout(**{**fields, "home": home, "experiments": Path(fields["experiments"])})
        missing = [name for name in PORTS if name not in layout.ports]
        if missing:
            raise KeyError(f"no port of {', '.join(missing)}, as an earlier version made it")
        return layout
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DeploymentError(
            f"{str(path)!r} does not say where the deployment is ({type(error).__name__}: {error}). Remove the "
            "deployment, and bring another up: make deploy-local-down deploy-local"
        ) from error


def claim_folder(home: Path) -> None:
    """Make the folder, for its owner alone. Raises DeploymentError if it has what no deployment has put there."""
    if home.exists() and not is_ours(home):
        raise DeploymentError(
            f"{str(home)!r} is there, and no deployment made it. Name a folder that is not there, or is empty: all of "
            "it is removed with the deployment."
        )
    home.mkdir(mode=0o700, exist_ok=True)
    home.chmod(0o700)
    (home / MARKER).touch()


def is_ours(home: Path) -> bool:
    """Whether a deployment made the folder, or it is empty."""
    return home.is_dir() and ((home / MARKER).exists() or not any(home.iterdir()))


def new_layout(home: Path, port: int, experiments: Path) -> Layout:
    """Choose ports and secrets for a new deployment, which exists when `keep_layout` has returned."""
    chosen = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    layout = replace(layout_of(home), port=port, ports=chosen, experiments=experiments)
    layout.secret_path("").mkdir()
    for name in SECRETS:
        keep_secret(layout, name, secrets.token_hex(32))
    return layout


def keep_secret(layout: Layout, name: str, value: str) -> None:
    path = layout.secret_path(name)
    path.touch(mode=0o600)
    path.write_text(value)


def keep_layout(layout: Layout) -> None:
    given = {"id": layout.id, "port": layout.port, "ports": layout.ports, "experiments": str(layout.experiments)}
    write_json(str(layout.home / "layout.json"), given)

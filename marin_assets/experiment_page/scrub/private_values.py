"""The values that identify this machine, the persons and machines in records, and the secrets of the environment."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from marin_assets.experiment_page.scrub.patterns import SECRET_FIELD
from marin_resources.host.process import user_name
from marin_resources.ray_tpu.log.redact import secrets_of

GENERAL_NAMES = frozenset(
    [
        "root",
        "user",
        "users",
        "admin",
        "ubuntu",
        "debian",
        "centos",
        "nobody",
        "runner",
        "builder",
        "worker",
        "jenkins",
        "ci",
        "app",
        "test",
        "tests",
        "data",
        "train",
        "docs",
        "guest",
        "default",
        "vscode",
        "codespace",
        "jovyan",
        "ec2-user",
        "airflow",
        "marin",
        "dagster",
        "ray",
        "python",
        "model",
        "models",
        "step",
        "steps",
        "localhost",
        "none",
        "null",
        "home",
        "base",
        "main",
        "head",
        "node",
    ]
)
"""Names of accounts and machines that identify nobody. As words of the page they stay."""
FEWEST_CHARACTERS = 2
FEWEST_OF_SECRET = 8
"""Characters of a variable that is a secret by its name alone. A shorter value is a flag or a number."""


@dataclass(frozen=True, kw_only=True)
class PrivateValues:
    """Values to remove from all texts."""

    prefixes: frozenset[str]
    """Absolute paths and URLs of prefixes."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Name of a person or a machine, in lower case -> its replacement."""
    secrets: tuple[str, ...] = ()


def private_values(
    prefixes: Iterable[str],
    *,
    users: Iterable[object] = (),
    hosts: Iterable[object] = (),
    variables: Iterable[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> PrivateValues:
    """The private values of this machine and of what was recorded.

    `users`, `hosts`: the names in records and leases. `variables`: environment variables that steps declare as secrets.
    """
    named = {environ_name for environ_name in environ if SECRET_FIELD.match(environ_name)}
    secrets = [value for value in secrets_of(named, environ) if len(value) >= FEWEST_OF_SECRET]
    names = {name: "<host>" for name in _names([*hosts, *_hosts_here()])}
    names |= {name: "<user>" for name in _names([*users, *_users_here(environ)])}
    places = {place.rstrip("/") for prefix in prefixes for place in (prefix, _real(prefix)) if _is_absolute(place)}
    return PrivateValues(
        prefixes=frozenset(place for place in places if place),
        names=names,
        secrets=tuple(dict.fromkeys([*secrets_of(variables, environ), *secrets])),
    )


def _names(values: Iterable[object]) -> set[str]:
    """The names in lower case; of a host with a domain also its first part."""
    texts = {value.strip().lower() for value in values if isinstance(value, str)}
    texts |= {text.partition(".")[0] for text in texts if " " not in text}
    return {
        text for text in texts if len(text) >= FEWEST_CHARACTERS and text not in GENERAL_NAMES and not text.isdigit()
    }


def _hosts_here() -> list[str]:
    return [os.uname().nodename, socket.gethostname()]


def _users_here(environ: Mapping[str, str]) -> list[str | None]:
    """The account and, if the system knows it, the person's full name."""
    try:
        full_name = pwd.getpwuid(os.getuid()).pw_gecos.split(",")[0]
    except KeyError:
        full_name = ""
    homes = [os.path.basename(environ.get("HOME", "").rstrip("/"))]
    return [user_name(), environ.get("USER"), full_name, *homes]


def _is_absolute(place: str) -> bool:
    return place.startswith("/") or "://" in place


def _real(prefix: str) -> str:
    return prefix if "://" in prefix else os.path.realpath(prefix)

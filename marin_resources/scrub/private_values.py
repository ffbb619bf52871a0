"""The values that identify this machine, the persons and machines in records, and the secrets of the environment."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from marin_resources.host.process import user_name
from marin_resources.ray_tpu.log.redact import secrets_of
from marin_resources.scrub.patterns import SECRET_FIELD
from marin_resources.types.record import Record

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
    return PrivateValues(
        prefixes=_places(place for prefix in prefixes for place in (prefix, _real(prefix))),
        names=_replacements(users=[*users, *_users_here(environ)], hosts=[*hosts, *_hosts_here()]),
        secrets=tuple(dict.fromkeys([*secrets_of(variables, environ), *secrets])),
    )


def recorded_values(records: Iterable[Record]) -> PrivateValues:
    """The private values in records alone: their prefixes, persons and machines. They are a function of the records, so
    that an output that is scrubbed of them has the same bytes on every machine."""
    records = list(records)
    return PrivateValues(
        prefixes=_places(places_of(records)),
        names=_replacements(users=users_of(records), hosts=hosts_of(records)),
    )


def places_of(records: Iterable[Record]) -> set[str]:
    """The prefixes in records."""
    return {str(place) for record in records for place in (record.prefix, record.data_prefix) if place}


def users_of(records: Iterable[Record]) -> set[str]:
    """The persons in records."""
    return {str(record.user) for record in records if record.user}


def hosts_of(records: Iterable[Record]) -> set[str]:
    """The machines in records."""
    return {str(record.host) for record in records if record.host}


def _replacements(users: Iterable[object], hosts: Iterable[object]) -> dict[str, str]:
    return {name: "<host>" for name in _names(hosts)} | {name: "<user>" for name in _names(users)}


def _places(prefixes: Iterable[str]) -> frozenset[str]:
    return frozenset(place for prefix in prefixes if _is_absolute(prefix) and (place := prefix.rstrip("/")))


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
    try:
        return prefix if "://" in prefix else os.path.realpath(prefix)
    except ValueError:  # a text in a record that is no path: a NUL, half a character
        return prefix

"""The Postgres of a dagster.yaml: one connection, before Dagster tries for half a minute with a worse error.

Neither a password nor a text that may be a part of one is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 5
"""Time limit of a connection, with its login."""
EXAMPLE = "postgresql://user:password@host:5432/database"


@dataclass(frozen=True, kw_only=True)
class Address:
    url: str
    where: str
    """The place that a person corrects: "MARIN_POSTGRES_URL", or "postgres_url in /home/dagster.yaml"."""


def addresses_in(settings: Any, environ: Mapping[str, str], path: str) -> list[Address]:
    """The databases that a dagster.yaml names, each once. One whose variable is not set is left out."""
    addresses: dict[str, Address] = {}
    for config in _configs_in(settings):
        given = config["postgres_url"]
        if isinstance(given, Mapping):
            name = str(given.get("env"))
            address = Address(url=environ.get(name, ""), where=name)
        else:
            address = Address(url=str(given), where=f"postgres_url in {path}")
        if address.url:
            addresses.setdefault(address.url, address)
    return list(addresses.values())


def why_no_connection(address: Address) -> str:
    """Why no connection is possible, and what to do, as a sentence; "" if one is."""
    import psycopg2

    if not _is_readable(address.url):
        return _not_an_address(address)
    try:
        psycopg2.connect(address.url.replace("+psycopg2", "", 1), connect_timeout=TIMEOUT_S).close()
    except psycopg2.OperationalError as error:
        text = str(error).strip().split("\n")[0]
        return _not_an_address(address) if "connection option" in text else _sentence(address, text)
    except (psycopg2.Error, ValueError):  # its text may hold a part of the password
        return _not_an_address(address)
    return ""


def _is_readable(url: str) -> bool:
    """Whether user, password, host and port can be distinguished."""
    try:
        parts = urlsplit(url)
        return parts.netloc.count("@") < 2 and "@" not in parts.path and (parts.port or 1) > 0 and bool(parts.netloc)
    except ValueError:
        return False


def _sentence(address: Address, why: str) -> str:
    shown = f"Dagster's database cannot be connected to ({why.removesuffix('.')})"
    if "password" in why or "no password supplied" in why or "role" in why:
        return f"{shown}. Correct the user or the password in {address.where}."
    if "database" in why and "does not exist" in why:
        return f"{shown}. Create that database, or correct its name in {address.where}."
    if "translate host name" in why:
        return f"{shown}. Correct the host in {address.where}."
    if "no pg_hba.conf entry" in why:
        return f"{shown}. Allow this machine in the server's pg_hba.conf."
    return f"{shown}. Start the server, or correct host and port in {address.where}."


def _not_an_address(address: Address) -> str:
    return (
        f"{address.where} is no address of a database (it is not shown here, as it holds a password), expected "
        f"{EXAMPLE}. Write the letters @ / : of a password as %40 %2F %3A."
    )


def _configs_in(settings: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(settings, Mapping):
        if "postgres_url" in settings:
            yield settings
        for value in settings.values():
            yield from _configs_in(value)

"""A database that cannot be used is one sentence within seconds, with what to correct, and without its password."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from postgres_server import PASSWORD, Postgres, postgres

from marin_resources.doctor.postgres import Address, addresses_in, why_no_connection


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture(scope="module")
def url(server: Postgres) -> str:
    return server.create("marin")


def test_a_database_that_answers_is_right(url: str) -> None:
    assert why_no_connection(Address(url=url, where="X")) == ""
    assert why_no_connection(Address(url=url.replace("postgresql:", "postgresql+psycopg2:"), where="X")) == ""


@pytest.mark.parametrize(
    ("right", "wrong", "advice"),
    [
        (PASSWORD, "another", "Correct the user or the password in X."),
        ("dagster:", "dagstr:", "Correct the user or the password in X."),
        (f":{PASSWORD}", "", "Correct the user or the password in X."),
        ("/marin", "/marino", "Create that database, or correct its name in X."),
        ("127.0.0.1", "nohost.invalid", "Correct the host in X."),
    ],
)
def test_each_wrong_part_of_an_address_has_its_advice(url: str, right: str, wrong: str, advice: str) -> None:
    began_s = time.monotonic()
    why = why_no_connection(Address(url=url.replace(right, wrong), where="X"))
    assert why.startswith("Dagster's database cannot be connected to (")
    assert why.endswith(advice)
    assert PASSWORD not in why
    assert time.monotonic() - began_s < 10


@pytest.mark.long
def test_a_server_that_says_nothing_takes_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marin_resources.doctor.postgres.TIMEOUT_S", 2)  # libpq's least
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        why = why_no_connection(Address(url=f"postgresql://a:b@127.0.0.1:{port}/c", where="X"))
    assert why.endswith("Start the server, or correct host and port in X.")


def test_the_addresses_of_a_dagster_yaml_are_found_once() -> None:
    storage = {"config": {"postgres_url": {"env": "URL"}}}
    settings = {
        "run_storage": storage,
        "event_log_storage": storage,
        "storage": {"postgres": {"postgres_url": "p://x"}},
    }
    found = addresses_in(settings, {"URL": "postgresql://h/d"}, "/home/dagster.yaml")
    assert [(each.url, each.where) for each in found] == [
        ("postgresql://h/d", "URL"),
        ("p://x", "postgres_url in /home/dagster.yaml"),
    ]
    assert addresses_in({"run_storage": storage}, {}, "x") == []

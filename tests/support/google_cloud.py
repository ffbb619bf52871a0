"""A Google Cloud with what the catalogue's clusters expect: service accounts, subnetworks, the token's secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_google.server import FakeGoogle, fake_google
from fake_google.world import World

from marin_resources.clusters.catalogue import read_catalogue

TOKEN = "a-token-of-rays-that-nobody-may-see"


def take_for_google(google: FakeGoogle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients in this process, and in those that it starts, take this for Google."""
    for name, value in google.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("httplib2.CA_CERTS", str(google.certificate))  # it reads its variable once


@contextmanager
def google_cloud(folder: Path, world: World | None = None) -> Iterator[FakeGoogle]:
    """A project in which infra/clusters.toml can be brought up."""
    with fake_google(folder, world) as google:
        for cluster in read_catalogue().values():
            google.world.subnetworks[cluster.subnetwork_path] = cluster.network
            google.world.secrets[cluster.token_secret] = TOKEN
            for account in (cluster.head_account, cluster.worker_account):
                google.identity.add_account(account)
        yield google

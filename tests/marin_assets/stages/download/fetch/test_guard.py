"""Addresses that are connected, and addresses that are refused."""

from __future__ import annotations

import ipaddress

import pytest

from marin_assets.stages.download.fetch.exchange import Client, Limits
from marin_assets.stages.download.fetch.guard import FetchFailure, Guard
from marin_assets.stages.download.links.addresses import Url, canonical_url

REFUSED = (
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "255.255.255.255",
    "224.0.0.1", "192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1", "fc00::1", "fec0::1", "ff02::1", "::ffff:10.0.0.1",
    "2002:7f00:1::", "64:ff9b::7f00:1", "fd00:ec2::254", "fe80::1%eth0",
)  # fmt: skip
PUBLIC = ("8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808")
LIMITS = Limits(body_bytes=1000, patience_s=1.0, min_bytes_per_s=1000.0)


def guard_of(*addresses: str, allowed: str | None = None) -> Guard:
    networks = () if allowed is None else (ipaddress.ip_network(allowed),)
    return Guard(allowed=networks, fixed={}, resolve=lambda host: addresses)


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(FetchFailure) as failure:
        guard_of(address).addresses("a.example")
    assert failure.value.reason == "refused_address"


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_connected(address: str) -> None:
    assert guard_of(address).addresses("a.example") == [address]


def test_a_host_with_a_single_private_address_is_refused() -> None:
    with pytest.raises(FetchFailure, match=r"a\.example has the address 10\.0\.0\.1"):
        guard_of("8.8.8.8", "10.0.0.1").addresses("a.example")


def test_an_allowed_network_is_that_network_alone() -> None:
    guard = guard_of("127.0.0.7", allowed="127.0.0.0/24")
    assert guard.addresses("a.example") == ["127.0.0.7"]
    with pytest.raises(FetchFailure):
        guard_of("127.0.1.7", allowed="127.0.0.0/24").addresses("a.example")


def test_a_name_that_changes_its_address_is_checked_at_each_request() -> None:
    """DNS rebinding: the first answer is public, the next one is of this machine."""
    answers = iter([["8.8.8.8"], ["127.0.0.1"]])
    guard = Guard(fixed={}, resolve=lambda host: next(answers))
    assert guard.addresses("a.example") == ["8.8.8.8"]
    url = canonical_url("http://a.example/")
    assert isinstance(url, Url)
    with pytest.raises(FetchFailure) as failure:
        Client(guard, "OwlBot/1.0").fetch(url, LIMITS, guard.addresses(url.host))
    assert failure.value.reason == "refused_address"

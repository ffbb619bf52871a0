"""Addresses of hosts: resolved for each request, and refused unless they are public.

A name of the web can resolve to this machine, to its network, or to the metadata server of a cloud, also after a
redirect or at the second look-up (DNS rebinding). So the address that is checked is the one that is connected.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str], Sequence[str]]
TUNNELS = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
"""NAT64: the last four bytes are an address of IPv4."""

PASSING = ("no_dns", "connection", "timed_out", "slow", "cut", "limited", "server_error")
"""Failures that may pass: they are tried again, and count against the host."""
LASTING = ("unresolved", "refused_address", "tls", "bad_answer", "too_large", "content_type")
"""Failures of which another try has the same."""


class FetchFailure(Exception):
    """A request without a usable answer: a reason of PASSING or LASTING, and a phrase with the values."""

    def __init__(self, reason: str, phrase: str, *, wait_s: float | None = None, status: int | None = None) -> None:
        super().__init__(phrase)
        self.reason, self.wait_s, self.status = reason, wait_s, status
        """`wait_s`: what the server states by Retry-After."""


@dataclass(frozen=True, kw_only=True)
class Guard:
    """Resolves hosts and refuses addresses."""

    allowed: tuple[Network, ...] = ()
    """Networks that are connected although they are not public."""
    fixed: Mapping[str, str]
    """Host -> address, in place of DNS."""
    resolve: Resolve

    def addresses(self, host: str) -> list[str]:
        """The addresses of a host, all of them public or allowed. Raises FetchFailure "unresolved" and
        "refused_address"."""
        try:
            texts: Sequence[str] = [str(ipaddress.ip_address(host))]
        except ValueError:
            texts = [self.fixed[host]] if host in self.fixed else self.resolve(host)
        for text in texts:
            if not self._is_allowed(ipaddress.ip_address(text.partition("%")[0])):
                raise FetchFailure("refused_address", f"{host} has the address {text}")
        return list(dict.fromkeys(texts))

    def _is_allowed(self, address: Address) -> bool:
        inner = _inner(address)
        return is_public(inner) or any(inner in network for network in self.allowed)


def _inner(address: Address) -> Address:
    """The address of IPv4 that one of IPv6 stands for."""
    if isinstance(address, ipaddress.IPv6Address):
        tunnelled = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if tunnelled is None and any(address in network for network in TUNNELS):
            tunnelled = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return tunnelled or address
    return address


def is_public(address: Address) -> bool:
    """Whether an address is one of the public internet, by IANA's registries, and of one machine."""
    is_site_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    return address.is_global and not (address.is_multicast or address.is_reserved or is_site_local)


def system_resolve(host: str) -> list[str]:
    """The addresses of a host by the system's resolver. Raises FetchFailure "unresolved", or "no_dns" for a failure
    that may pass."""
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        lasting = error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        raise FetchFailure("unresolved" if lasting else "no_dns", f"{host} has no address ({error.strerror})") from None
    except UnicodeError:
        raise FetchFailure("unresolved", f"{host} is no name of DNS") from None
    return [str(info[4][0]) for info in infos]

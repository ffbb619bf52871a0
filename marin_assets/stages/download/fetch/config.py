"""The config of a crawl."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any

from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.configuration.user_agent import is_contact
from marin_resources.hardware.resources import Resources
from marin_resources.types.errors import MarinError

AGENT = re.compile(r"[A-Za-z_-]{3,40}\Z")
"""A product token of RFC 9309."""


class FetchPagesError(MarinError, ValueError):
    """A config that cannot be used, or a crawl without a page: one sentence."""


@dataclass(frozen=True, kw_only=True)
class FetchPagesConfig:
    contact: str = versioned("")
    """Contact of the person behind the crawl, for owners of sites: an address of the web, or of mail. Required."""
    urls_path: str | None = None
    """Rows with "url", documents with metadata.url, or a text file (.txt, .txt.gz) with an address on each line. Wrap
    it in versioned(), unless it is the output of a step."""
    urls: tuple[str, ...] = versioned(())
    """Addresses beside those of `urls_path`, or in their place."""
    output_path: str = THIS_OUTPUT_PATH
    agent: str = versioned("MarinDagsterBot")
    """Name of the crawler, by which robots.txt addresses it: letters, _ and -."""
    content_types: tuple[str, ...] = versioned(("text/html", "application/xhtml+xml"))
    """MIME types that are read, as the server declares them; () reads all."""
    max_page_bytes: int = versioned(10_000_000)
    """Limit of a page's body, on the wire and decoded."""
    max_redirects: int = versioned(5)
    max_pages: int | None = versioned(None)
    """Budget of fetched pages; None has no limit. The addresses that are left have the outcome "budget"."""
    max_bytes: int | None = versioned(None)
    """Budget of bytes of answers."""
    max_hours: float = versioned(24.0)
    """Budget of time, of all attempts together."""
    max_pages_per_host: int = versioned(10_000)
    tries: int = versioned(3)
    """Requests for an address whose failures may pass."""
    max_host_failures: int = versioned(10)
    """Failures of a host in a row that end it."""
    max_crawl_delay_s: float = versioned(60.0)
    """A host that requests a longer delay is not visited."""
    robots_hours: float = versioned(24.0)
    """Time for which a robots.txt holds; at most 24."""
    patience_s: float = versioned(30.0)
    """Time that an answer has, and one second more for each `min_bytes_per_s` bytes."""
    min_bytes_per_s: float = versioned(2000.0)
    warc_bytes: int = versioned(2**30)
    """Size of a WARC file."""
    delay_s: float = 1.0
    """Time between the end of a request to a host and the next one; a Crawl-delay may be longer."""
    by_address: bool = True
    """Whether host names with one address share its connection and `delay_s`. False is for lists whose hosts are behind
    a few networks of delivery, which answer for many thousands of sites from one address."""
    backoff_s: float = 5.0
    """Time that a host is left alone after its first failure. It doubles with each failure in a row, up to 300 s."""
    connections: int = 64
    """Hosts that are visited at once. An answer takes up to three times max_page_bytes of memory."""
    commit_s: float = 10.0
    """Time between two batches. In a bucket a kill loses what came after the last one."""
    allowed_networks: tuple[str, ...] = ()
    """Networks that are connected although they are not public, such as "127.0.0.0/8" for a test on loopback."""
    hosts: dict[str, str] = field(default_factory=dict)
    """Host -> address, in place of DNS, for tests and mirrors."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, check, name)


def check(config: FetchPagesConfig) -> None:
    """Raise FetchPagesError for values that cannot be used."""
    if not is_contact(config.contact):
        raise FetchPagesError(
            f"contact is {config.contact!r}, expected an address of a page about the crawl, 'https://…', or of mail, "
            "by which the owner of a site can reach you: sites block crawlers without one. Pass contact=versioned(…)."
        )
    if not AGENT.match(config.agent):
        raise FetchPagesError(f"agent is {config.agent!r}, expected 3 to 40 letters, _ or -, such as 'ExampleBot'.")
    if config.urls_path is None and not config.urls:
        raise FetchPagesError("urls_path is None and urls is (), expected addresses to fetch. Pass one of them.")
    for name in ("max_page_bytes", "max_pages_per_host", "tries", "max_host_failures", "connections", "warc_bytes"):
        if getattr(config, name) < 1:
            raise FetchPagesError(f"{name} is {getattr(config, name)!r}, expected 1 or more. Correct it.")
    for name in ("max_pages", "max_bytes"):
        if (value := getattr(config, name)) is not None and value < 1:
            raise FetchPagesError(f"{name} is {value!r}, expected 1 or more, or None. Correct it.")
    for name in ("max_hours", "patience_s", "min_bytes_per_s", "robots_hours"):
        if not 0 < getattr(config, name) < float("inf"):
            raise FetchPagesError(f"{name} is {getattr(config, name)!r}, expected a number above 0. Correct it.")
    for name in ("delay_s", "backoff_s", "commit_s", "max_crawl_delay_s", "max_redirects"):
        if not 0 <= getattr(config, name) < float("inf"):
            raise FetchPagesError(f"{name} is {getattr(config, name)!r}, expected 0 or more. Correct it.")
    if config.robots_hours > 24:
        raise FetchPagesError(f"robots_hours is {config.robots_hours!r}, expected at most 24 (RFC 9309). Correct it.")
    networks(config)


def networks(config: FetchPagesConfig) -> tuple[Any, ...]:
    """The networks of `allowed_networks`. Raises FetchPagesError."""
    try:
        for address in config.hosts.values():
            ipaddress.ip_address(address)
        return tuple(ipaddress.ip_network(text) for text in config.allowed_networks)
    except ValueError as error:
        raise FetchPagesError(
            f"allowed_networks or hosts has what is no network or address ({error}). Expected '127.0.0.0/8' or "
            "'127.0.0.1'."
        ) from None

"""Fetch the pages of a list of addresses politely, as WARC files: a crawl of one's own.

In:  rows with "url" (of `extract_outlinks`, for one), documents with metadata.url, or a text with an address on each
     line.
Out: warc/       WARC files, for `read_warc`: request and response, a gzip member a record
     outcomes/   a row for each address, {"id", "url", "outcome"}, and what applies of status, target, date, bytes,
                 detail
     robots/     a row for each robots.txt: {"origin", "outcome", "text", …}

Each row is an address or rejected for one reason, rows = urls + rows_rejected, and each address has one outcome: urls
= sum of outcome_<x>. The output is a capture: it depends on the time of the crawl. Its version is that of the list and
the config.

A host has one connection at a time, and `delay_s` or its Crawl-delay between two requests; hosts with one address share
its connection and its `delay_s`; robots.txt is obeyed. Only public addresses are connected. A crawl that was killed
continues behind the last answer that had arrived, in a bucket behind the last batch; tries and failures count on.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.download.fetch.failure import LASTING, PASSING
from marin_assets.stages.download.fetch.listing import list_addresses, listing_shard
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.configuration.user_agent import is_contact
from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import exists, read_json, remove_folder, write_json
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

KINDS = ("html",)

HIDDEN = ".marin/fetch"
OUTCOMES = (
    "fetched", "status", "redirected", "robots", "robots_unreachable", "crawl_delay", *LASTING, *PASSING,
    "bad_redirect", "redirect_loop", "too_many_redirects", "host_failed", "host_limit", "budget",
)  # fmt: skip
"""Outcomes of addresses; docs/reference/crawls.md explains each."""
AGENT = re.compile(r"[A-Za-z_-]{3,40}\Z")
"""A product token of RFC 9309."""
log = logging.getLogger(__name__)


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
        check_config(self, _check, name)


def fetch_pages(config: FetchPagesConfig) -> dict[str, Any]:
    """Fetch the pages of a list of addresses politely, as WARC files.

    Returns rows, urls, rows_rejected, each rejected_<reason>, fetched, each outcome_<x> of OUTCOMES, urls_unaccounted,
    which is 0, hosts, bytes (of fetched pages), warc_files and robots_files. Raises FetchPagesError if no page is
    fetched.
    """
    _check(config)
    hidden = join(config.output_path, HIDDEN)
    listing, batches = join(hidden, "listing"), join(hidden, "batches")
    shard = listing_shard(config.urls_path, tuple(config.urls), listing)
    counts = map_shards(list_addresses, [shard], output_path=config.output_path)
    if not counts["urls"]:
        raise FetchPagesError(
            f"None of the {counts['rows']:,} rows of {config.urls_path!r} is an address to fetch. Expected rows with "
            "'url', documents with metadata.url, or lines of a .txt file."
        )
    _crawl(config, hidden, listing, batches)
    published = _publish(config, listing, batches, int(counts["urls"]))
    outcomes = {f"outcome_{name}": published[f"outcome_{name}"] for name in OUTCOMES}
    if not outcomes["outcome_fetched"]:
        reasons = ", ".join(f"{count:,} {name.removeprefix('outcome_')}" for name, count in outcomes.items() if count)
        raise FetchPagesError(
            f"None of the {counts['urls']:,} addresses was fetched ({reasons}). The outcomes are below "
            f"{config.output_path!r}; remove it to try again."
        )
    remove_folder(hidden)
    unaccounted = int(counts["urls"]) - sum(outcomes.values())
    others = {name: published[name] for name in ("hosts", "bytes", "warc_files", "robots_files")}
    return {**counts, "fetched": outcomes["outcome_fetched"], **outcomes, "urls_unaccounted": unaccounted, **others}


def _check(config: FetchPagesConfig) -> None:
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
    _networks(config)


def _networks(config: FetchPagesConfig) -> tuple[Any, ...]:
    try:
        for address in config.hosts.values():
            ipaddress.ip_address(address)
        return tuple(ipaddress.ip_network(text) for text in config.allowed_networks)
    except ValueError as error:
        raise FetchPagesError(
            f"allowed_networks or hosts has what is no network or address ({error}). Expected '127.0.0.0/8' or "
            "'127.0.0.1'."
        ) from None


def _crawl(config: FetchPagesConfig, hidden: str, listing: str, folder: str) -> None:
    """Fetch until every address has an outcome, or a budget is spent; then the crawl is not continued."""
    ended = join(hidden, "ended.json")
    if exists(ended) and not read_json(ended)["is_whole"]:
        return
    from marin_assets.stages.download.fetch.batches import Batches, restored
    from marin_assets.stages.download.fetch.crawler import Crawl, Crawler
    from marin_assets.stages.download.fetch.exchange import Client, Limits, types_of, user_agent_of
    from marin_assets.stages.download.fetch.frontier import Frontier
    from marin_assets.stages.download.fetch.guard import Guard, system_resolve
    from marin_assets.stages.download.fetch.listing import hashes_in, jobs_of

    before = restored(folder)
    if before.batches:
        log.info("%s addresses have an outcome of an earlier attempt", f"{len(before.done):,}")
    first = before.batches[-1] + 1 if before.batches else 0
    guard = Guard(allowed=_networks(config), fixed=config.hosts, resolve=system_resolve)
    crawl = Crawl(
        config=config,
        client=Client(guard, user_agent_of(config.agent, config.contact)),
        limits=Limits(
            body_bytes=config.max_page_bytes,
            patience_s=config.patience_s,
            min_bytes_per_s=config.min_bytes_per_s,
            content_types=types_of(config.content_types),
        ),
        # an earlier attempt may have visited a host just now
        frontier=Frontier(
            jobs_of(listing, before.done, config.max_pages_per_host, before.tries),
            first_wait_s=config.delay_s if exists(join(hidden, "begun.json")) else 0.0,
            address_delay_s=config.delay_s,
        ),
        batches=Batches(folder, first, config.commit_s),
        listed=hashes_in(listing),
        before=before,
    )
    write_json(join(hidden, "begun.json"), {})
    is_whole = Crawler(crawl).run()
    write_json(ended, {"is_whole": is_whole})


def _publish(config: FetchPagesConfig, listing: str, folder: str, urls: int) -> Any:
    from marin_assets.stages.download.fetch.batches import restored
    from marin_assets.stages.download.fetch.exchange import user_agent_of
    from marin_assets.stages.download.fetch.publish import Publication, publish

    info = {
        "software": "marin-dagster",
        "format": "WARC File Format 1.0",
        "robots": "classic",
        "operator": config.contact,
        "http-header-user-agent": user_agent_of(config.agent, config.contact),
    }
    return publish(
        Publication(
            output_path=config.output_path,
            listing=listing,
            batches_folder=folder,
            batches=restored(folder).batches,
            urls=urls,
            warc_bytes=config.warc_bytes,
            info=info,
        )
    )

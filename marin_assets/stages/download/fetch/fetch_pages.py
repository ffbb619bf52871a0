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

import logging
from contextlib import suppress
from typing import Any

from marin_assets.stages.download.fetch.config import FetchPagesConfig, FetchPagesError, check, networks
from marin_assets.stages.download.fetch.guard import LASTING, PASSING
from marin_assets.stages.download.fetch.listing import list_addresses, listing_shard
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import exists, read_json, remove_folder, write_json
from marin_resources.storage.paths import join

__all__ = ["FetchPagesConfig", "FetchPagesError", "fetch_pages"]

KINDS = ("html",)

HIDDEN, RESULT = ".marin/fetch", "result.json"
OUTCOMES = (
    "fetched", "status", "redirected", "robots", "robots_unreachable", "crawl_delay", *LASTING, *PASSING,
    "bad_redirect", "redirect_loop", "too_many_redirects", "host_failed", "host_limit", "budget",
)  # fmt: skip
"""Outcomes of addresses; docs/reference/crawls.md explains each."""
log = logging.getLogger(__name__)


def fetch_pages(config: FetchPagesConfig) -> dict[str, Any]:
    """Fetch the pages of a list of addresses politely, as WARC files.

    Returns rows, urls, rows_rejected, each rejected_<reason>, fetched, each outcome_<x> of OUTCOMES, urls_unaccounted,
    which is 0, hosts, bytes (of fetched pages), warc_files and robots_files. Raises FetchPagesError if no page is
    fetched.
    """
    check(config)
    hidden = join(config.output_path, HIDDEN)
    listing, batches = join(hidden, "listing"), join(hidden, "batches")
    result_file = join(hidden, RESULT)
    if exists(result_file):  # an earlier attempt was killed after its last page, and before its step was complete
        _remove(listing, batches)
        earlier: dict[str, int] = read_json(result_file)
        return earlier
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
    unaccounted = int(counts["urls"]) - sum(outcomes.values())
    others = {name: published[name] for name in ("hosts", "bytes", "warc_files", "robots_files")}
    result = {**counts, "fetched": outcomes["outcome_fetched"], **outcomes, "urls_unaccounted": unaccounted, **others}
    write_json(result_file, result)
    _remove(listing, batches)  # the result stays: without it and these, all pages would be fetched again
    return result


def _remove(*folders: str) -> None:
    for folder in folders:
        with suppress(FileNotFoundError):
            remove_folder(folder)


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
    guard = Guard(allowed=networks(config), fixed=config.hosts, resolve=system_resolve)
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

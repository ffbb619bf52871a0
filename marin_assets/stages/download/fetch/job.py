"""A job of a crawl: a page of the list, or a robots.txt, on its way through redirects and tries."""

from __future__ import annotations

from dataclasses import dataclass, field

from marin_assets.stages.download.links.addresses import Url


@dataclass(eq=False, slots=True)
class Job:
    key: str
    """The place in the order of the listing; of a robots.txt its origin."""
    first: Url
    """The address of the list, or of the robots.txt."""
    url: Url
    """The address that is requested next."""
    is_robots: bool = False
    is_over_limit: bool = False
    """Whether the listing has max_pages_per_host addresses of its host before it."""
    tries: int = 0
    """Failures at `url`, those of earlier attempts too."""
    visited: list[str] = field(default_factory=list)
    """Addresses that redirected."""
    records: list[bytes] = field(default_factory=list)
    """WARC records of the redirects."""

"""Rules of robots.txt for this crawler, by RFC 9309; Protego matches them.

    no robots.txt (4xx)         all is allowed
    5xx, 429, no connection     nothing is allowed
    200                         the rules in its first 500 KiB

Protego ignores rules after a byte order mark, and a group for "name/1.0": both are corrected before it reads the file.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.download.links.addresses import Url

ROBOTS_BYTES = 500 * 1024
MAX_REDIRECTS = 5
_AGENT_LINE = re.compile(r"(?im)^([ \t]*user-?agent[ \t]*:[ \t]*[a-z0-9_*-]+)/[^\r\n#]*")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of an origin."""

    outcome: str
    """"rules", "all_allowed", or the reason why nothing is allowed."""
    parsed: Any = None
    delay_s: float = 0.0
    """Crawl-delay, or the time of one request by Request-rate."""

    @property
    def is_closed(self) -> bool:
        return self.outcome not in ("rules", "all_allowed")

    def allows(self, url: Url, agent: str) -> bool:
        return self.parsed is None or bool(self.parsed.can_fetch(url.url, agent))


def rules_of(body: bytes, agent: str) -> Rules:
    """Return the rules of a file. Raises nothing: lines that are none are skipped."""
    from protego import Protego  # late, for its weight

    if len(body) > ROBOTS_BYTES:
        body = body[:ROBOTS_BYTES].rpartition(b"\n")[0]
    text = body.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\0", "")
    parsed = Protego.parse(_AGENT_LINE.sub(r"\1", text))
    rate = parsed.request_rate(agent)
    delays = [parsed.crawl_delay(agent) or 0.0, rate.seconds / rate.requests if rate and rate.requests else 0.0]
    return Rules("rules", parsed, max(float(delay) for delay in delays if not math.isnan(delay)))


def rules_of_status(status: int) -> Rules | None:
    """The rules of an answer that is no file; None of one that is."""
    if status == 200:
        return None
    if 400 <= status < 500 and status != 429:
        return Rules("all_allowed")
    return Rules("robots_unreachable")

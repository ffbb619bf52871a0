"""What a lease's file says: Marin's two fields, `worker_id` and `timestamp`, and nothing else.

Marin reads the file into a class of these two and fails on a third, so all that we tell of a holder stands in
`worker_id`, as "key=value" words that a person can read too. A lease that was given up has a timestamp of 0, which
Marin takes for stale. A `worker_id` without such words is Marin's own.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

from marin_resources.output import Holder

TTL_S = 90.0
"""Seconds without a renewal after which a lease may be taken over. Marin's HEARTBEAT_TIMEOUT; ours say it themselves,
so holders and observers need not agree on it."""
TTL_VARIABLE = "MARIN_LEASE_TTL_S"


def ttl_s() -> float:
    """Time to live of the leases that this process takes, and of those that do not say."""
    return float(os.environ.get(TTL_VARIABLE) or TTL_S)


def held_text(holder: Holder, timestamp: float) -> bytes:
    """A lease that is held. No two are equal: the owner is new with each acquisition, the time with each renewal."""
    words = {
        "owner": holder.owner,
        "host": holder.host,
        "pid": holder.pid,
        "run": holder.run_id,
        "since": holder.since,
        "ttl_s": holder.ttl_s,
        "attempt": holder.attempt,
    }
    told = " ".join(f"{key}={_word(value)}" for key, value in words.items() if value is not None)
    return json.dumps({"worker_id": told, "timestamp": timestamp}).encode()


def free_text(holder: Holder) -> bytes:
    """A lease that `holder` has given up."""
    return json.dumps({"worker_id": f"free was={holder.owner}", "timestamp": 0}).encode()


def parse(text: bytes, generation: str) -> Holder | None:
    """The holder, or None if the lease is free. What cannot be read is held by somebody unknown."""
    try:
        fields = json.loads(text)
        told, timestamp = str(fields["worker_id"]), float(fields["timestamp"])
    except (ValueError, KeyError, TypeError):
        told, timestamp = "?", 0.0
    if timestamp == 0 and told != "?":
        return None
    words: dict[str, Any] = dict(word.partition("=")[::2] for word in told.split(" ")) if is_ours(told) else {}
    return Holder(
        owner=words.get("owner", told),
        host=words.get("host", "?"),
        pid=int(words.get("pid", 0)),
        run_id=words.get("run"),
        since=words.get("since", "?"),
        heartbeat=_iso(timestamp),
        ttl_s=float(words.get("ttl_s") or ttl_s()),
        attempt=int(words.get("attempt", 0)),
        generation=generation,
    )


def is_ours(worker_id: str) -> bool:
    return worker_id.startswith("owner=")


def _word(value: Any) -> str:
    return str(value).replace(" ", "_")


def _iso(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="seconds") if timestamp else "?"

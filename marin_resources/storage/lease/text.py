"""The text of a lease's file: Marin's two fields, `worker_id` and `timestamp`, and nothing else.

Marin reads the file into a class with these two fields and fails on a third. So `worker_id` holds all our facts about
the holder, as "key=value" words that people can read too. A released lease has a timestamp of 0, which Marin treats as
stale. A `worker_id` without such words is Marin's own.
"""

from __future__ import annotations

import json
import math
import os
from datetime import UTC, datetime
from typing import Any

from marin_resources.configuration.settings import SettingError
from marin_resources.types.output import Holder
from marin_resources.types.versioned_json import MAX_DEPTH, is_deeper

TTL_S = 90.0
"""Seconds without a renewal after which a lease may be taken over: Marin's HEARTBEAT_TIMEOUT. Our leases carry their
own value, so holders and observers need not agree on it."""
TTL_VARIABLE = "MARIN_LEASE_TTL_S"
UNREADABLE = "unknown"
"""The beginning of the owner of a lease that cannot be read."""
SHOWN_CHARACTERS = 120
"""Characters that are shown of the reason why a lease cannot be read."""


def ttl_s() -> float:
    """Time to live, in seconds, of the leases that this process acquires, and of leases that carry none.

    Raises SettingError.
    """
    text = os.environ.get(TTL_VARIABLE) or str(TTL_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise SettingError(f"{TTL_VARIABLE} is {text!r}, expected seconds above 0.")
    return seconds


def held_text(holder: Holder, timestamp: float) -> bytes:
    """The text of a held lease. No two are equal: each acquisition has a new owner, each renewal a new time."""
    words = {
        "owner": holder.owner,
        "host": holder.host,
        "pid": holder.pid,
        "run": holder.run_id,
        "since": holder.since,
        "ttl_s": holder.ttl_s,
        "attempt": holder.attempt,
    }
    worker_id = " ".join(f"{key}={_word(value)}" for key, value in words.items() if value is not None)
    return json.dumps({"worker_id": worker_id, "timestamp": timestamp}).encode()


def free_text(holder: Holder) -> bytes:
    """The text of a lease that `holder` has released."""
    return json.dumps({"worker_id": f"free was={holder.owner}", "timestamp": 0}).encode()


def parse(text: bytes, generation: str, path: str) -> Holder | None:
    """The holder that the lease at `path` names, or None if it is free.

    A lease that cannot be read counts as held by an unknown holder, so it may be taken over when it becomes stale.
    """
    try:
        return _parse(text, generation)
    except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"[:SHOWN_CHARACTERS]
        owner = f"{UNREADABLE}, as the lease {path!r} cannot be read ({problem})"
        return Holder(owner=owner, host="?", pid=0, run_id=None, since="?", ttl_s=ttl_s(), generation=generation)


def _parse(text: bytes, generation: str) -> Holder | None:
    fields = json.loads(text)
    if is_deeper(fields, MAX_DEPTH):
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    worker_id, timestamp = str(fields["worker_id"]), float(fields["timestamp"])
    if timestamp == 0:
        return None
    words: dict[str, Any] = (
        dict(word.partition("=")[::2] for word in worker_id.split(" ")) if is_ours(worker_id) else {}
    )
    life_s = float(words.get("ttl_s") or ttl_s())
    if not 0 < life_s < math.inf:
        raise ValueError(f"a time to live of {life_s} s")
    return Holder(
        owner=words.get("owner", worker_id),
        host=words.get("host", "?"),
        pid=int(words.get("pid", 0)),
        run_id=words.get("run"),
        since=words.get("since", "?"),
        heartbeat=_iso(timestamp),
        ttl_s=life_s,
        attempt=int(words.get("attempt", 0)),
        generation=generation,
    )


def is_ours(worker_id: str) -> bool:
    return worker_id.startswith("owner=")


def _word(value: Any) -> str:
    return str(value).replace(" ", "_")


def _iso(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="seconds") if timestamp else "?"

"""The outputs that are competed for, what a writer puts into their files, and how often what goes wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from marin_resources.types.output import Output

TTLS_S = {"gs": 1.0, "s3": 2.5}
"""How long leases live, by the kind of store. A claim takes 5 ms of two cores' time on a disk, 0.1 s against the
servers of the tests for GCS, and 1 s against moto: with eight at once a shorter life would end in every claim."""
TTL_ON_DISK_S = 0.6
OUTPUTS_IN_A_ROUND = 6
PARTS = 3

DIE_AT_A_POINT = 0.012
PAUSE_AT_A_POINT = 0.012
PAUSE_BEFORE_PUBLISHING = 0.12
"""Between the last look at the lease and the compare-and-swap."""
PAUSE_BEFORE_WRITING = 0.02
LOSE_A_WRITE = 0.02
"""A control file's: once before its effect and once after it, with this probability each."""
KILL_EVERY_S = 1.2
PAUSE_EVERY_S = 0.7
PAUSES_IN_LIVES = (0.3, 2.5)
"""At any time: how long, in leases' times to live."""
PAUSES_AT_A_POINT_IN_LIVES = (1.5, 3.0)
LONGEST_PAUSE_IN_LIVES = 5.0
"""Of a writer that stopped before publishing, and is to go on when another has taken over."""
DEAF = 0.5
"""The part of the workers that does not stop when its lease is lost, as one that hangs in C would not."""
MISTAKE_A_HOLDER_FOR_DEAD = 0.01
"""At each look while waiting for it."""
CLOCK_OFFSETS_S = (-3600, -3600, -60, 0, 0, 60, 3600, 3600)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How the writers of an output write its files."""

    name: str
    creates: bool
    """Create, and never replace (`replace=False`)."""
    resumes: bool
    """Go on with what an earlier attempt has left. Its files are the same whoever writes them, as shards are."""


KINDS = (
    Kind(name="created", creates=True, resumes=False),
    Kind(name="resumed", creates=True, resumes=True),
    Kind(name="replaced", creates=False, resumes=False),
)


def ttl_s_on(prefix: str) -> float:
    return TTLS_S.get(prefix.partition("://")[0], TTL_ON_DISK_S)


def outputs_of(round_number: int) -> list[Output]:
    names = (f"round-{round_number}/{KINDS[i % len(KINDS)].name}-{i}" for i in range(OUTPUTS_IN_A_ROUND))
    return [Output(name=n, version="abc123", identity=hashlib.sha256(n.encode()).hexdigest()) for n in names]


def kind_of(name: str) -> Kind:
    word = name.rpartition("/")[2].partition("-")[0]
    return next(kind for kind in KINDS if kind.name == word)


def part_names() -> Iterator[str]:
    return (f"part-{number}.json" for number in range(PARTS))


def part_bytes(name: str, part: str, fence: int) -> bytes:
    """What a writer with this fence writes: it says who, unless the next is to go on with it."""
    who = 0 if kind_of(name).resumes else fence
    return json.dumps({"output": name, "part": part, "fence": who}).encode() * 50

"""One look of a sensor at its place: what is new, what is complete, and what has changed since it was taken.

A tick lists the names of all deliveries, the files of those that are not taken, and, in rotation, the files of those
that are: each once in `recheck_s`. It ends when its time is over, and the next one continues from there.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from marin_resources.storage.files import read_bytes
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.partition_key import (
    FoldersOfKeys,
    PartitionKeyError,
    key_of_revision,
    revision_of,
    segment_of,
)
from marin_sensors.deliveries.checksums import Checksums, Wanted
from marin_sensors.deliveries.completeness import Completeness
from marin_sensors.deliveries.decide import DeliveryEvent, DeliveryPhase, DeliveryState, Finding, decide
from marin_sensors.deliveries.delivery_listing import DeliveryListing, change_between
from marin_sensors.deliveries.listing import Listing
from marin_sensors.deliveries.memory import Memory, State
from marin_sensors.deliveries.pattern import DeliveryPattern

T = TypeVar("T")
LISTING_TIMEOUT_S = 40.0
"""Below the 60 s that Dagster gives a tick."""
SHOWN = 3


WAIT_S = 4.0
"""Time that a tick waits for the checksums of one delivery; it has others."""


class ListingError(MarinError):
    """A place that cannot be listed now: one sentence."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """The place that a sensor watches, and the rules."""

    pattern: DeliveryPattern
    rule: Completeness
    revises: bool
    """Whether a delivery that has changed is taken again, as a new revision."""
    at_most: int
    """Deliveries that are taken in one tick."""
    recheck_s: float
    budget_s: float
    """Seconds that a tick lists files."""
    expects_place: bool = True
    """Whether the place must exist before the first delivery."""
    noun: str = "delivery"
    """The word for a delivery in sentences."""
    checksums: Checksums = field(default_factory=Checksums)
    """Those that are known already."""
    waits: str = ""
    """Why no delivery is taken now, as a phrase; empty: complete deliveries are taken."""


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """The state that Dagster keeps between two ticks: small, whatever the number of deliveries."""

    state: str = ""
    arriving_at: str = ""
    """The delivery that was listed last, of those that are not taken."""
    taken_at: str = ""
    """The delivery that was listed last, of those that are taken, in the sweep under way; empty: none is under way."""
    swept_s: float = 0.0
    """When the last sweep began."""

    @classmethod
    def parse(cls, text: str | None) -> Cursor:
        """Raises ListingError for a text that is no cursor of this sensor."""
        try:
            return cls(**json.loads(text)) if text else cls()
        except (ValueError, TypeError):
            raise ListingError(
                f"The cursor {text!r:.100} is none of this sensor. Reset it: it takes all deliveries again, and "
                "complete outputs are reused."
            ) from None

    def text(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A delivery whose partition is to be made."""

    delivery: str
    key: str
    files: int
    bytes: int


@dataclass(kw_only=True)
class Tick:
    """The result of one look."""

    cursor: Cursor = field(default_factory=Cursor)
    taken: list[Taken] = field(default_factory=list)
    changes: dict[str, str] = field(default_factory=dict)
    """Partition key -> what has happened to its delivery, in one sentence."""
    refused: list[str] = field(default_factory=list)
    summary: str = ""


def look(watch: Watch, memory: Memory, cursor: Cursor, now_s: float, keys: Sequence[str] = ()) -> Tick:
    """Look at the place once. `keys`: those that the set of partitions has.

    Raises ListingError, and ControlFileError for a state that cannot be read.
    """
    state = memory.read(cursor.state)
    listing = Listing(watch.pattern)
    names = _listed(lambda: listing.names, watch)
    _require_not_all_gone(names, state.deliveries, watch)
    if not names and watch.expects_place and (absent := _listed(listing.absent, watch)):
        raise ListingError(
            f"The place of the {plural(watch.noun)}, {watch.pattern.path!r}, does not exist: {absent}. Correct the "
            "sensor's path, or create it. The next tick looks again."
        )
    deliveries, tick = dict(state.deliveries), Tick()
    arriving: dict[str, str] = {}
    last_new = state.last_new
    ends_s = time.monotonic() + watch.budget_s
    folders = FoldersOfKeys(keys)

    def contents(name: str) -> Contents:
        return Contents(
            folder=listing.folder_of(name),
            read_within=lambda path: _listed(lambda: read_bytes(path), watch),
            computed=watch.checksums,
            ends_s=ends_s,
        )

    def decide_one(name: str, seen: DeliveryListing | None) -> None:
        nonlocal last_new
        files = contents(name)
        delivery_state, finding = decide(
            name, deliveries.get(name), seen, now_s, watch.rule, files, revises=watch.revises
        )
        if finding is not None and finding.event is DeliveryEvent.TAKE:
            assert seen is not None
            if watch.waits or len(tick.taken) >= watch.at_most:
                arriving[name] = watch.waits or f"the tick takes {watch.at_most} at most"
                return  # nothing is noted, so the next tick decides the same
            key = key_of_revision(name, finding.revision)
            try:
                folders.require_free(key, "the set of partitions")
            except PartitionKeyError as error:
                tick.refused.append(f"The {watch.noun} {name!r} is not taken. {error}")
                return  # also nothing is noted
            memory.note_taken(key, seen.stamps)
            files.forget(seen)
            tick.taken.append(Taken(delivery=name, key=key, files=len(seen.stamps), bytes=seen.bytes))
            last_new = f"{name!r} at {datetime.fromtimestamp(now_s, UTC):%Y-%m-%d %H:%M} UTC"
        elif finding is not None and finding.event is DeliveryEvent.ARRIVING:
            arriving[name] = finding.why
        elif finding is not None and finding.event is DeliveryEvent.UNREADABLE:
            tick.refused.append(f"The {watch.noun} {name!r} cannot be taken: {finding.why}.")
        elif finding is not None:
            sentence = _sentence(watch.noun, finding, seen, deliveries.get(name), memory)
            tick.changes[key_of_revision(name, finding.revision)] = sentence
        if delivery_state is None:
            deliveries.pop(name, None)
        else:
            deliveries[name] = delivery_state

    listed = set(names)
    for name in sorted(deliveries.keys() - listed):
        decide_one(name, None)
    fresh = [name for name in names if name not in deliveries or deliveries[name].phase is DeliveryPhase.ARRIVING]
    arriving_at = ""
    for name in _from(fresh, cursor.arriving_at):
        if _refuse(name, tick):
            continue
        decide_one(name, _listed(lambda name=name: listing.look(name), watch))  # type: ignore[misc]
        if time.monotonic() >= ends_s:
            arriving_at = name
            break
    taken_at, swept_s = cursor.taken_at, cursor.swept_s
    begins = not taken_at and (now_s - swept_s >= watch.recheck_s or now_s < swept_s)
    if begins:
        swept_s = now_s
    if taken_at or begins:
        looked_at = frozenset(fresh)
        settled = [name for name in names if name not in looked_at and name > taken_at]
        taken_at = ""
        for name in settled:
            decide_one(name, _listed(lambda name=name: listing.look(name), watch))  # type: ignore[misc]
            if time.monotonic() >= ends_s and name != settled[-1]:
                taken_at = name
                break
    after = State(deliveries=deliveries, last_new=last_new)
    named = cursor.state if after == state else memory.write(after, cursor.state)
    tick.cursor = Cursor(state=named, arriving_at=arriving_at, taken_at=taken_at, swept_s=swept_s)
    tick.summary = _summary(watch, after, arriving, tick)
    return tick


def _listed(call: Callable[[], T], watch: Watch) -> T:
    """The result of a listing, within its time. Raises ListingError with the store's message."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(call())
        except BaseException as error:  # the waiting thread raises it; stores raise errors of any kind
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LISTING_TIMEOUT_S)
    if failed:
        reason = " ".join(str(failed[0]).split())[:300] or type(failed[0]).__name__
        raise ListingError(f"{watch.pattern.path!r} could not be listed ({reason}). The next tick looks again.")
    if not done:
        raise ListingError(
            f"{watch.pattern.path!r} was not listed within {LISTING_TIMEOUT_S:g} s. The next tick looks again."
        )
    return done[0]


def _require_not_all_gone(names: Sequence[str], deliveries: Mapping[str, DeliveryState], watch: Watch) -> None:
    if deliveries and not names:
        raise ListingError(
            f"Nothing is at {watch.pattern.base!r} any more: {counted(len(deliveries), watch.noun)} known. See that "
            "the folder or the bucket is the right one and can be read. The next tick looks again."
        )


def _refuse(name: str, tick: Tick) -> bool:
    """Whether the name cannot be the key of a partition."""
    try:
        segment_of(key_of_revision(name, 2))
    except PartitionKeyError as error:
        tick.refused.append(str(error))
        return True
    if "..." in name or not name.isprintable():
        tick.refused.append(f"The delivery {name!r} has '...' or an unprintable character in its name. Rename it.")
        return True
    if revision_of(name)[1] > 1:
        tick.refused.append(f"The delivery {name!r} has the name of another one's revision. Rename it.")
        return True
    return False


def _from(names: Sequence[str], after: str) -> Iterator[str]:
    """All names, beginning after this one."""
    yield from (name for name in names if name > after)
    yield from (name for name in names if name <= after)


def _sentence(
    noun: str, finding: Finding, seen: DeliveryListing | None, delivery_state: DeliveryState | None, memory: Memory
) -> str:
    if finding.event is DeliveryEvent.VANISHED:
        return f"The {noun} {finding.delivery!r} is gone from its place."
    if finding.event is DeliveryEvent.REVERTED:
        return f"The {noun} {finding.delivery!r} has the files again that were taken."
    assert seen is not None
    assert delivery_state is not None
    taken = memory.taken(key_of_revision(finding.delivery, delivery_state.revision))
    changed = change_between(taken, seen.stamps).describe() if taken else "its files differ"
    again = f" It is taken again as revision {finding.revision} when it is complete." * (
        finding.revision > delivery_state.revision
    )
    return f"The {noun} {finding.delivery!r} has changed since it was taken: {changed}.{again}"


def counted(number: int, noun: str) -> str:
    """ "1 delivery", "2 deliveries"."""
    return f"{number} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def _summary(watch: Watch, state: State, arriving: Mapping[str, str], tick: Tick) -> str:
    phases = Counter(delivery.phase for delivery in state.deliveries.values())
    parts = [
        f"{counted(len(state.deliveries), watch.noun)} at {watch.pattern.path}: {phases[DeliveryPhase.TAKEN]} taken"
    ]
    if arriving:
        examples = ", ".join(f"{name!r}: {why}" for name, why in list(arriving.items())[:SHOWN])
        parts.append(f"{phases[DeliveryPhase.ARRIVING]} arriving ({examples}{', …' * (len(arriving) > SHOWN)})")
    for sentences in (list(tick.changes.values()), tick.refused):
        parts += sentences[:SHOWN]
        parts += [f"and {len(sentences) - SHOWN} more in the tick's log"] * (len(sentences) > SHOWN)
    parts.append(f"last new one: {state.last_new}" if state.last_new else "no new one yet")
    return "; ".join(part.rstrip(".") for part in parts) + "."


@dataclass(frozen=True, kw_only=True)
class Contents:
    folder: str
    """The folder that the names of the files are relative to."""
    read_within: Callable[[str], bytes]
    """Reads a path, or raises ListingError."""
    computed: Checksums
    ends_s: float
    """When the tick ends, by the monotonic clock."""

    def read(self, name: str) -> bytes:
        return self.read_within(join(self.folder, name))

    def checksums(self, algorithms: Mapping[str, str], seen: DeliveryListing) -> Mapping[str, str | OSError]:
        stamps = {**seen.beside, **seen.stamps}
        files = {
            name: Wanted(
                path=join(self.folder, name),
                size_bytes=int(stamps[name].partition(" ")[0]),
                stamp=stamps[name],
                algorithm=algorithm,
            )
            for name, algorithm in algorithms.items()
        }
        wait_s = min(WAIT_S, max(0.0, self.ends_s - time.monotonic()))
        checksums = self.computed.of(list(files.values()), wait_s)
        return {name: checksums[file] for name, file in files.items() if file in checksums}

    def forget(self, seen: DeliveryListing) -> None:
        """Forget the checksums: the delivery is taken."""
        self.computed.forget({join(self.folder, name) for name in (*seen.stamps, *seen.beside)})

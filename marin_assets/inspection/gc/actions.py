"""Collect what was proposed, and purge what is over: each output by itself, so that one that is kept stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from marin_assets.inspection.gc.proposals import Proposal
from marin_assets.inspection.gc.roots import Roots
from marin_resources.storage.collect.errors import KeptError
from marin_resources.storage.collect.purge import purge
from marin_resources.storage.collect.withdraw import Terms, withdraw
from marin_resources.storage.output.notes.collection import Collected
from marin_resources.storage.output.restore import restore_output
from marin_resources.storage.output.store import Store
from marin_resources.types.versioned_json import ControlFileError

AT_ONCE = 16

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Done:
    """The outcome for one output."""

    relative: str
    """Path of the output below the prefix."""
    bytes: int = 0
    until: str = ""
    """End of the grace time of a collected output."""
    kept: str = ""
    """Reason why it stays as it is, as a phrase; "" if it does not."""


def collect(store: Store, proposals: Iterable[Proposal], terms: Terms) -> Iterator[Done]:
    """Withdraw each output. Raises UnavailableError."""

    def act(proposal: Proposal) -> Done:
        note = withdraw(store, proposal.stored.output(proposal.record), terms)
        return Done(relative=note.relative, bytes=note.bytes or proposal.stored.bytes, until=note.until)

    return _each(list(proposals), act, lambda proposal: proposal.stored.relative)


def purge_expired(store: Store, notes: Iterable[Collected], roots: Roots, now: datetime) -> Iterator[Done]:
    """Remove the data of each collected output whose grace time is over, and that is still not needed.

    `roots` must have been found after the outputs were collected. An experiment that ran before does not count, as
    whoever has collected the output knew it. Raises UnavailableError.
    """

    def act(note: Collected) -> Done:
        reason = roots.kept.why(note.relative, since=datetime.fromisoformat(note.at))
        if reason is not None:
            raise KeptError(f"it is needed: {reason.sentence}")
        return Done(relative=note.relative, bytes=purge(store, note))

    return _each([note for note in notes if note.is_over(now)], act, lambda note: note.relative)


def restore(store: Store, notes: Iterable[Collected]) -> Iterator[Done]:
    """Bring each collected output back. Raises UnavailableError."""

    def act(note: Collected) -> Done:
        if not restore_output(store, store.locate(note.output)):
            raise KeptError("its data are removed, or an attempt computes it again")
        return Done(relative=note.relative, bytes=note.bytes or 0)

    return _each(list(notes), act, lambda note: note.relative)


def _each(items: list[T], act: Callable[[T], Done], path_of: Callable[[T], str]) -> Iterator[Done]:
    def tried(item: T) -> Done:
        try:
            return act(item)
        except (KeptError, ControlFileError) as error:
            return Done(relative=path_of(item), kept=str(error))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(tried, items)

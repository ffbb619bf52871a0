"""Which region's file a path of the mirror means now, and whether a copy of it is still true.

The local file counts if it was written here. A copy counts while what it is a copy of is as it was, or is gone; when
that has changed, the copy is made anew. Without a local file it is the cheapest region's that has one. A region that
has a copy only is asked no more than it knows: if the copy is out of date, its origin is taken in its place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from marin_resources.storage.mirror.stored import SCHEME, Origin, Stored
from marin_resources.storage.mirror.stores import store_of
from marin_resources.storage.transfer.regions import Region, Regions

Look = Callable[[Region, str], Stored | None]
"""What a region has at a relative path."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    region: Region
    stored: Stored
    origin: Origin | None = None
    """What a local copy of it is to be noted as a copy of. None if it is here."""
    replaces: str | None = None
    """Generation of the local copy that is out of date."""


def look_up(region: Region, relative: str) -> Stored | None:
    """By one request."""
    path = region.place(relative)
    return store_of(path).find(path)


def choose(relative: str, regions: Regions, look: Look = look_up) -> Choice | None:
    """The file that `relative` means, or None if no region has it."""
    here = look(regions.local, relative)
    if here is not None:
        newer = _newer(here, regions, look)
        if newer is None:
            return Choice(region=regions.local, stored=here)
        log.warning("%s has changed in %s since it was copied here", SCHEME + relative, newer[0].name)
        return _first_hand(*newer, replaces=here.generation)
    for region in regions.others:
        stored = look(region, relative)
        if stored is not None:
            return _there(region, stored, regions, look)
    return None


def nowhere(relative: str, regions: Regions) -> FileNotFoundError:
    return FileNotFoundError(f"There is nothing at {SCHEME + relative!r} in {regions.described()}.")


def _there(region: Region, stored: Stored, regions: Regions, look: Look) -> Choice:
    """Another region's file, or what it is an outdated copy of."""
    current = _origin_now(stored, regions, look)
    if current is None:
        return _first_hand(region, stored)
    if stored.origin is None or current[1].generation != stored.origin.generation:
        return _first_hand(*current)
    return Choice(region=region, stored=stored, origin=stored.origin)


def _first_hand(region: Region, stored: Stored, replaces: str | None = None) -> Choice:
    origin = Origin(path=stored.path, generation=stored.generation)
    return Choice(region=region, stored=stored, origin=origin, replaces=replaces)


def _newer(copy: Stored, regions: Regions, look: Look) -> tuple[Region, Stored] | None:
    """What `copy` was made of, if that has changed since."""
    found = _origin_now(copy, regions, look)
    if found is None or copy.origin is None or found[1].generation == copy.origin.generation:
        return None
    return found


def _origin_now(copy: Stored, regions: Regions, look: Look) -> tuple[Region, Stored] | None:
    """What lies now where `copy` was made from: None if it is no copy, or if that is gone, not declared, or here."""
    held = regions.holding(copy.origin.path) if copy.origin else None
    if held is None or held[0] == regions.local:
        return None
    stored = look(*held)
    return (held[0], stored) if stored else None

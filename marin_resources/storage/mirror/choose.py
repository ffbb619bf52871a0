"""Choose the region whose file a mirror path means now, and whether a copy of it is current.

A local file that was written here is chosen first. A local copy is chosen while its origin is unchanged or gone; if the
origin has changed, it is copied again. Without a local file the cheapest region that has the file is chosen. If that
region has only an outdated copy, the copy's origin is chosen in its place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from marin_resources.storage.mirror.protocol import SCHEME, Origin, Stored
from marin_resources.storage.mirror.stores import store_of
from marin_resources.storage.transfer.regions import Region, Regions

Look = Callable[[Region, str], Stored | None]
"""Reads the file that a region has at a relative path."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    region: Region
    stored: Stored
    origin: Origin | None = None
    """Recorded as the origin of the local copy. None if the file is in the local region."""
    replaces: str | None = None
    """Generation of the outdated local copy."""


def look_up(region: Region, relative: str) -> Stored | None:
    """The file, by one request."""
    path = region.place(relative)
    return store_of(path).find(path)


def choose(relative: str, regions: Regions, look: Look = look_up) -> Choice | None:
    """The file that `relative` means; None if no region has it."""
    here = look(regions.local, relative)
    if here is not None:
        newer = _newer(here, regions, look)
        if newer is None:
            return Choice(region=regions.local, stored=here)
        log.warning("%s has changed in %s since it was copied here", SCHEME + relative, newer[0].name)
        return _original(*newer, replaces=here.generation)
    for region in regions.others:
        stored = look(region, relative)
        if stored is not None:
            return _in_region(region, stored, regions, look)
    return None


def not_found(relative: str, regions: Regions) -> FileNotFoundError:
    return FileNotFoundError(f"Nothing exists at {SCHEME + relative!r} in {regions.describe()}.")


def _in_region(region: Region, stored: Stored, regions: Regions, look: Look) -> Choice:
    """Another region's file; its origin, if the file is an outdated copy."""
    current = _origin_now(stored, regions, look)
    if current is None:
        return _original(region, stored)
    if stored.origin is None or current[1].generation != stored.origin.generation:
        return _original(*current)
    return Choice(region=region, stored=stored, origin=stored.origin)


def _original(region: Region, stored: Stored, replaces: str | None = None) -> Choice:
    origin = Origin(path=stored.path, generation=stored.generation)
    return Choice(region=region, stored=stored, origin=origin, replaces=replaces)


def _newer(copy: Stored, regions: Regions, look: Look) -> tuple[Region, Stored] | None:
    """The origin of `copy`, if it has changed since the copy was made."""
    origin = _origin_now(copy, regions, look)
    if origin is None or copy.origin is None or origin[1].generation == copy.origin.generation:
        return None
    return origin


def _origin_now(copy: Stored, regions: Regions, look: Look) -> tuple[Region, Stored] | None:
    """The current file at the origin of `copy`.

    None if `copy` has no origin, or if the origin is gone, in no declared region, or in the local one.
    """
    held = regions.holding(copy.origin.path) if copy.origin else None
    if held is None or held[0] == regions.local:
        return None
    stored = look(*held)
    return (held[0], stored) if stored else None

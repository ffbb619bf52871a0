"""Regions: the prefixes that hold the same outputs in several locations, and the price of a transfer between them.

    MARIN_MIRROR_PREFIXES   us-central2=gs://marin-us-central2/x,eu-west4=gs://marin-eu-west4/x   (or folders)
    MARIN_REGION            the local region; if not set, the one whose prefix is MARIN_PREFIX
    MARIN_MIRROR_PRICES     eu-west4>us-central2=0.05: dollars per GB, in place of the table below

The table is Google's list price for data that moves between locations of Cloud Storage, by continent, as of 2024
(cloud.google.com/storage/pricing, "Data transfer within Google Cloud"). It orders the regions that have an object and
estimates the cost; the bill is Google's. There a GB is 2**30 bytes. Reading from a folder is free.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache

from marin_resources.configuration.settings import SettingError, default_prefix, normalize_prefix
from marin_resources.storage.paths import StoreKind, is_local, kind_of, without_scheme
from marin_resources.types.places import is_same, is_within, relative_to

PREFIXES, REGION, PRICES = "MARIN_MIRROR_PREFIXES", "MARIN_REGION", "MARIN_MIRROR_PRICES"
UNDECLARED = "local"
"""Name of the only region, if none is declared."""
CONTINENT = {
    **dict.fromkeys(("us", "northamerica"), "North America"),
    **dict.fromkeys(("eu", "europe"), "Europe"),
    "asia": "Asia",
    "australia": "Oceania",
    **dict.fromkeys(("me", "africa"), "Middle East and Africa"),
    "southamerica": "South America",
}
"""First part of a region's name -> continent."""
WITHIN = {"North America": 0.02, "Europe": 0.02, "Asia": 0.08, "Oceania": 0.08}
"""Dollars per GB between two regions of the continent."""
ACROSS = {
    "North America": 0.05,
    "Europe": 0.05,
    "Asia": 0.08,
    "Oceania": 0.10,
    "Middle East and Africa": 0.11,
    "South America": 0.14,
}
"""Dollars per GB between continents: the higher of the two applies."""
UNKNOWN = 0.14
"""Dollars per GB for a region on an unknown continent: the highest price, so that it is never preferred by mistake."""
BILLED_GB_BYTES = 2**30
MIRRORED_KINDS = (StoreKind.DISK, StoreKind.GCS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    name: str
    prefix: str

    def place(self, relative: str) -> str:
        """The path of `relative` in this region."""
        return f"{self.prefix}/{relative}" if relative else self.prefix


@dataclass(frozen=True, kw_only=True)
class Regions:
    local: Region
    others: tuple[Region, ...] = ()
    """Ordered by price, the cheapest first."""
    prices: tuple[tuple[str, str, float], ...] = field(default=(), repr=False)
    """(from, to, dollars per GB), as declared."""

    @property
    def all(self) -> tuple[Region, ...]:
        """In the order in which they are searched."""
        return (self.local, *self.others)

    def dollars(self, source: Region, size_bytes: int) -> float:
        """The price of a transfer of `size_bytes` from `source` to the local region."""
        return dollars_per_gb(source, self.local, self.prices) * size_bytes / BILLED_GB_BYTES

    def holding(self, path: str) -> tuple[Region, str] | None:
        """The region that contains a full path, and the path below its prefix; None if no region does."""
        for region in self.all:
            relative = relative_to(path, [region.prefix])
            if relative is not None or is_same(path, region.prefix):
                return region, relative or ""
        return None

    def describe(self) -> str:
        """Names and prefixes, for error sentences."""
        return ", ".join(f"{region.name} ({region.prefix!r})" for region in self.all)


def declared_regions() -> Regions:
    """The regions as the environment declares them. Raises SettingError."""
    variables = (os.environ.get(name, "") for name in (PREFIXES, REGION, PRICES))
    return read_declaration(*variables, own_prefix=default_prefix())


@lru_cache(maxsize=64)
def read_declaration(prefixes: str, region: str, prices: str, *, own_prefix: str) -> Regions:
    """Regions by the text of the three variables. Raises SettingError: one sentence with the wrong part."""
    if not prefixes.strip():
        return Regions(local=Region(name=region or UNDECLARED, prefix=own_prefix))
    declared = [_read_region(item, prefixes) for item in prefixes.split(",")]
    _refuse_overlap(declared)
    local = _local_one(declared, region, own_prefix)
    paid = tuple(_read_price(item, {r.name for r in declared}) for item in prices.split(",") if item.strip())
    others = sorted((r for r in declared if r != local), key=lambda r: dollars_per_gb(r, local, paid))
    return Regions(local=local, others=tuple(others), prices=paid)


def dollars_per_gb(source: Region, target: Region, declared: tuple[tuple[str, str, float], ...] = ()) -> float:
    """Dollars per GB from one region to another: as declared, else by Google's table."""
    for origin, to, price in declared:
        if (origin, to) == (source.name, target.name):
            return price
    if source.name == target.name or is_local(source.prefix):
        return 0.0
    source_continent, target_continent = (CONTINENT.get(r.name.split("-")[0]) for r in (source, target))
    if source_continent is None or target_continent is None:
        return UNKNOWN
    if source_continent == target_continent:
        return WITHIN.get(source_continent, ACROSS[source_continent])
    return max(ACROSS[source_continent], ACROSS[target_continent])


def _read_region(item: str, declaration: str) -> Region:
    name, equals, prefix = (part.strip() for part in item.partition("="))
    if not equals or not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name) or not prefix:
        raise SettingError(
            f"{PREFIXES} is {declaration!r}, and {item.strip()!r} in it is not a region with its prefix. "
            "Write name=prefix, separated by commas: us-central2=gs://bucket/x,eu-west4=gs://other/x."
        )
    if is_local(prefix) and not os.path.isabs(os.path.expanduser(without_scheme(prefix))):
        raise SettingError(
            f"{PREFIXES} puts region {name!r} at {prefix!r}, which each process would resolve in its own folder. "
            "Give an absolute path."
        )
    prefix = normalize_prefix(prefix)
    if kind_of(prefix) not in MIRRORED_KINDS:
        raise SettingError(
            f"{PREFIXES} puts region {name!r} at {prefix!r}, and a mirror consists of folders and gs:// prefixes. "
            "Leave that region out."
        )
    return Region(name=name, prefix=prefix)


def _refuse_overlap(regions: list[Region]) -> None:
    for i, region in enumerate(regions):
        for other in regions[i + 1 :]:
            if region.name == other.name:
                raise SettingError(f"{PREFIXES} has the region {region.name!r} twice. Keep one of the two prefixes.")
            if is_within(region.prefix, other.prefix) or is_within(other.prefix, region.prefix):
                raise SettingError(
                    f"{PREFIXES} has {region.prefix!r} for {region.name!r} and {other.prefix!r} for {other.name!r}, "
                    "one inside the other. Give each region a prefix of its own."
                )


def _local_one(regions: list[Region], name: str, own_prefix: str) -> Region:
    names = ", ".join(f"{r.name}={r.prefix}" for r in regions)
    for region in regions:
        if region.name == name or (not name and is_same(region.prefix, own_prefix)):
            return region
    if name:
        raise SettingError(f"{REGION} is {name!r}, and {PREFIXES} has {names}. Set it to one of these regions.")
    raise SettingError(
        f"MARIN_PREFIX is {own_prefix!r}, which is none of the prefixes in {PREFIXES} ({names}). "
        f"Add it there as region=prefix, or set {REGION} to the region of this machine."
    )


def _read_price(item: str, names: set[str]) -> tuple[str, str, float]:
    matched = re.fullmatch(r"\s*([\w-]+)\s*>\s*([\w-]+)\s*=\s*(\d+(?:\.\d+)?)\s*", item)
    if not matched or not {matched[1], matched[2]} <= names:
        raise SettingError(
            f"{PRICES} has {item.strip()!r}, expected from>to=dollars per GB with two of the regions "
            f"{', '.join(sorted(names))}, such as eu-west4>us-central2=0.05."
        )
    return matched[1], matched[2], float(matched[3])

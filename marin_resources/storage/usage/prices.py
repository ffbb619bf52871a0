"""The price of a device hour: a setting, as prices differ between contracts and regions, and change.

    MARIN_DEVICE_PRICES   v5p=4.2@2026-11-01,H100=2.99@2026-10-15

Dollars for an hour of one chip of a generation of TPUs, or of one GPU of a model, and the day of the price. No table of
list prices exists: for a preemptible machine they are wrong within weeks.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from marin_resources.configuration.settings import SettingError
from marin_resources.hardware.catalogue import find_generation, find_gpu_type, near_devices
from marin_resources.hardware.resources import pool_name

VARIABLE = "MARIN_DEVICE_PRICES"
ITEM = re.compile(r"(?P<device>[^=@]+)=(?P<dollars>[^=@]+)@(?P<on>[^=@]+)")


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price of a device hour."""

    device: str
    """A generation of TPUs ("v5p"), or a model of GPU ("H100")."""
    dollars: float
    on: date
    """The day of the price."""

    def describe(self) -> str:
        """A phrase for people: "v5p $4.20 (2026-11-01)"."""
        return f"{self.device} ${self.dollars:,.2f} ({self.on.isoformat()})"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of device hours."""

    dollars: float
    unpriced: tuple[str, ...]
    """Pools with hours of unknown price, which are not in it."""


@dataclass(frozen=True)
class Prices:
    """The declared prices; none at all by default."""

    all: tuple[Price, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.all)

    def of_pool(self, pool: str) -> Price | None:
        """The price of the devices of a pool ("tpu_v5p_32", "gpu_H100"); None if it is not declared."""
        for price in self.all:
            if pool == pool_name("gpu", price.device) or pool.startswith(pool_name("tpu", price.device) + "_"):
                return price
        return None

    def cost(self, hours: Mapping[str, float]) -> Cost:
        """The cost of these hours: pool -> device hours."""
        prices = {pool: self.of_pool(pool) for pool, spent in hours.items() if spent}
        return Cost(
            dollars=sum(price.dollars * hours[pool] for pool, price in prices.items() if price is not None),
            unpriced=tuple(sorted(pool for pool, price in prices.items() if price is None)),
        )


def declared_prices() -> Prices:
    """The prices as the environment declares them. Raises SettingError: one sentence with the wrong part."""
    items = [item.strip() for item in os.environ.get(VARIABLE, "").split(",")]
    prices = tuple(_price(item) for item in items if item)
    devices = [price.device for price in prices]
    for device in devices:
        if devices.count(device) > 1:
            raise SettingError(f"{VARIABLE} has two prices of {device!r}, expected one. Remove the older.")
    return Prices(prices)


def _price(item: str) -> Price:
    match = ITEM.fullmatch(item)
    if match is None:
        raise SettingError(f"{VARIABLE} has {item!r}, expected device=dollars@day, as in v5p=4.2@2026-11-01.")
    return Price(
        device=_device(match["device"].strip()),
        dollars=_dollars(match["dollars"].strip(), item),
        on=_day(match["on"].strip(), item),
    )


def _device(name: str) -> str:
    device = find_generation(name) or (name if find_gpu_type(name) else None)
    if device is None:
        near = ", ".join(map(repr, near_devices(name)))
        raise SettingError(
            f"{VARIABLE} has a price of {name!r}, expected a generation of TPUs or a model of GPU; near it are {near}."
        )
    return device


def _dollars(text: str, item: str) -> float:
    try:
        dollars = float(text)
    except ValueError:
        dollars = math.nan
    if not 0 <= dollars < math.inf:
        raise SettingError(f"{VARIABLE} has {item!r} with {text!r} dollars, expected a number from 0.")
    return dollars


def _day(text: str, item: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SettingError(f"{VARIABLE} has {item!r} with the day {text!r}, expected one such as 2026-11-01.") from None

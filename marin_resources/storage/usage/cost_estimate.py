"""The cost of an output in dollars, at today's prices.

Chips and GPUs are paid by the hour that they were held; the CPUs of their hosts are in that. A step without devices
pays for its CPUs. The price of a chip or a CPU is that of the cluster in the catalogue (`chip_dollars`, `cpu_dollars`)
that the record names, else of MARIN_DEVICE_PRICES. Without a price nothing is guessed: the bill has the reason.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from marin_resources.clusters.catalogue import VARIABLE, default_path, read_catalogue
from marin_resources.clusters.cluster import Cluster
from marin_resources.storage.output.notes.cost import RecordCost
from marin_resources.storage.usage.prices import Prices, declared_prices


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """The cost of one output."""

    dollars: float | None
    """None: not known."""
    unknown: str = ""
    """Reason why it is not known, as a phrase: "no price of tpu_v4_8"."""


@dataclass(frozen=True, kw_only=True)
class PriceList:
    """Today's prices."""

    prices: Prices = field(default_factory=Prices)
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    """The catalogue."""


def price_list() -> PriceList:
    """The prices of the environment and the catalogue, which may be missing without a checkout. Raises SettingError."""
    has_catalogue = VARIABLE in os.environ or default_path().exists()
    return PriceList(prices=declared_prices(), clusters=read_catalogue() if has_catalogue else {})


def bill_of(cost: RecordCost, listed: PriceList) -> CostEstimate:
    """Transfers from other regions are charged to the step's own ledger, and not in it."""
    if cost.device_s is None:
        return CostEstimate(dollars=None, unknown="its record says nothing of devices")
    cluster = _cluster(cost, listed.clusters)
    if cost.device_s:
        dollars = _device_dollars(cost.pool, listed.prices, cluster)
        if dollars is None:
            return CostEstimate(dollars=None, unknown=f"no price of {cost.pool or 'its devices'}")
        return CostEstimate(dollars=dollars * cost.device_s / 3600)
    if cost.priced_cpu_s is None:
        return CostEstimate(dollars=None, unknown="its record has no CPU seconds")
    if cluster is None or cluster.cpu_dollars is None:
        where = f"the cluster {cluster.name!r}" if cluster else "the machine it ran on"
        return CostEstimate(dollars=None, unknown=f"no price of a CPU of {where}")
    return CostEstimate(dollars=cluster.cpu_dollars * cost.priced_cpu_s / 3600)


def _device_dollars(pool: str | None, prices: Prices, cluster: Cluster | None) -> float | None:
    if pool is None:
        return None
    if pool.startswith("tpu") and cluster is not None and cluster.chip_dollars is not None:
        return cluster.chip_dollars
    price = prices.of_pool(pool)
    return None if price is None else price.dollars


def _cluster(cost: RecordCost, clusters: Mapping[str, Cluster]) -> Cluster | None:
    """The cluster that the record names; one that is no member of a fleet by the address of its dashboard."""
    if cost.cluster is not None:
        return clusters.get(cost.cluster)
    return next((cluster for cluster in clusters.values() if cluster.dashboard == cost.dashboard), None)

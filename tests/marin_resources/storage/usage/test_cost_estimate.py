"""What an output has cost in dollars, and why that is not known."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleets import use, write_catalogue

from marin_resources.storage.output.notes.cost import RecordCost
from marin_resources.storage.usage.cost_estimate import CostEstimate, PriceList, bill_of, price_list
from marin_resources.storage.usage.prices import VARIABLE

HOUR_S = 3600.0


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PriceList:
    use(write_catalogue(tmp_path, of_central="chip_dollars = 2.0\ncpu_dollars = 0.05"), monkeypatch)
    monkeypatch.setenv(VARIABLE, "v5p=4@2026-11-01,v4=3@2026-11-01")
    return price_list()


def chips(pool: str, **fields: str) -> RecordCost:
    return RecordCost(device_s=8 * HOUR_S, reserved_cpu_s=100 * HOUR_S, pool=pool, **fields)  # type: ignore[arg-type]


def test_chips_cost_what_the_catalogue_says_and_else_the_declared_price(listed: PriceList) -> None:
    assert bill_of(chips("tpu_v4_16", cluster="central"), listed) == CostEstimate(dollars=16.0)
    assert bill_of(chips("tpu_v4_16", dashboard="http://10.10.0.10:8265"), listed) == CostEstimate(dollars=16.0)
    assert bill_of(chips("tpu_v5p_64", cluster="east"), listed) == CostEstimate(dollars=32.0)
    assert bill_of(chips("tpu_v4_16"), PriceList(prices=listed.prices)) == CostEstimate(dollars=24.0)


def test_cpus_cost_what_the_catalogue_says_of_their_cluster(listed: PriceList) -> None:
    cost = RecordCost(device_s=0, reserved_cpu_s=2 * HOUR_S, cpu_s=HOUR_S, cluster="central")
    assert bill_of(cost, listed) == CostEstimate(dollars=0.1)


def test_what_has_no_price_says_why(listed: PriceList) -> None:
    of_cpus = RecordCost(device_s=0, reserved_cpu_s=2 * HOUR_S)
    for cost, why in (
        (RecordCost(wall_s=5), "its record says nothing of devices"),
        (chips("gpu_H100"), "no price of gpu_H100"),
        (RecordCost(device_s=0), "its record has no CPU seconds"),
        (of_cpus, "no price of a CPU of the machine it ran on"),
        (RecordCost(device_s=0, reserved_cpu_s=1, cluster="east"), "no price of a CPU of the cluster 'east'"),
    ):
        assert bill_of(cost, listed) == CostEstimate(dollars=None, unknown=why)

"""Prices of device hours, as the environment declares them."""

from __future__ import annotations

from datetime import date

import pytest

from marin_resources.configuration.settings import SettingError
from marin_resources.hardware.resources import gpu, tpu
from marin_resources.storage.usage.prices import VARIABLE, Prices, declared_prices


def declared(monkeypatch: pytest.MonkeyPatch, text: str) -> Prices:
    monkeypatch.setenv(VARIABLE, text)
    return declared_prices()


def test_a_price_is_that_of_a_chip_of_the_generation_or_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    prices = declared(
        monkeypatch, " v5p=4.2@2026-11-01, v5e = 1.2 @ 2026-10-01 ,H100=2.99@2026-10-15,A100-40G=1@2026-01-01,"
    )
    dollars = {
        resources.pool: price.dollars if resources.pool and (price := prices.of_pool(resources.pool)) else None
        for resources in (
            tpu("v5p-32"),
            tpu("v5p-8"),
            tpu("v5e-16"),
            gpu("H100", 8),
            gpu("A100-40G"),
            tpu("v4-8"),
            gpu(),
        )
    }
    assert list(dollars.values()) == [4.2, 4.2, 1.2, 2.99, 1.0, None, None]
    assert prices.all[0].on == date(2026, 11, 1)
    assert prices.all[0].describe() == "v5p $4.20 (2026-11-01)"


def test_hours_of_unknown_price_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = declared(monkeypatch, "v5p=4@2026-11-01").cost({"tpu_v5p_32": 10, "tpu_v5p_8": 1, "gpu": 3, "gpu_H100": 0})
    assert (cost.dollars, cost.unpriced) == (44, ("gpu",))


def test_nothing_is_declared_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not declared(monkeypatch, "")
    monkeypatch.delenv(VARIABLE)
    assert not declared_prices()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v5p=4.2", "has 'v5p=4.2', expected device=dollars@day, as in v5p=4.2@2026-11-01."),
        ("4.2", "has '4.2', expected device=dollars@day"),
        (
            "v5x=4.2@2026-11-01",
            "has a price of 'v5x', expected a generation of TPUs or a model of GPU; near it are 'v5p'",
        ),
        ("v5p-32=4.2@2026-11-01", "has a price of 'v5p-32', expected a generation of TPUs or a model of GPU"),
        ("h100=4.2@2026-11-01", "near it are 'H100'"),
        ("v5p=cheap@2026-11-01", "with 'cheap' dollars, expected a number from 0."),
        ("v5p=-1@2026-11-01", "with '-1' dollars"),
        ("v5p=nan@2026-11-01", "with 'nan' dollars"),
        ("v5p=4@November", "with the day 'November', expected one such as 2026-11-01."),
        ("v5e=4@2026-11-01,v5litepod=3@2026-10-01", "has two prices of 'v5litepod', expected one."),
    ],
)
def test_a_mistake_is_one_sentence(monkeypatch: pytest.MonkeyPatch, text: str, expected: str) -> None:
    with pytest.raises(SettingError) as raised:
        declared(monkeypatch, text)
    assert str(raised.value).startswith(f"{VARIABLE} ")
    assert expected in str(raised.value)

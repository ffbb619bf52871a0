"""The sensor on a budget, ticked by hand; what was spent lies in a store, the webhook is a server on loopback."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from partition_steps import part
from running import definitions_of
from usage_lab import HOUR, NOON, Lab, move
from webhooks import SECRET, Webhook

from marin_resources.hardware.resources import cpu, gpu, tpu
from marin_sensors import budget as module
from marin_sensors.budget import Period, budget, start_of


class Clock:
    """The time of the sensor's machine."""

    now = NOON + 6 * HOUR

    def time(self) -> float:
        return self.now.timestamp()


class Deployment:
    def __init__(self, instance: dg.DagsterInstance, calls: Path, **limits: Any) -> None:
        self.cursor: str | None = None
        self._instance = instance
        self._definitions = definitions_of(
            [dataclasses.replace(part("trained", None, calls), resources=gpu("H100", 2))]
        )
        self._sensor = budget("lab", ui="https://dagster.example.org", **limits)

    def tick(self) -> str:
        """What the sensor says."""
        context = dg.build_sensor_context(instance=self._instance, cursor=self.cursor, definitions=self._definitions)
        skipped = self._sensor(context)
        assert isinstance(skipped, dg.SkipReason)
        self.cursor = context.cursor
        return str(skipped.skip_message)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def lab(disk_or_gcs_prefix: str, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Lab:
    monkeypatch.setenv("MARIN_PREFIX", disk_or_gcs_prefix)
    return Lab(disk_or_gcs_prefix)


def test_a_budget_that_is_overspent_is_one_message(
    lab: Lab, webhook: Webhook, instance: dg.DagsterInstance, tmp_path: Path, clock: Clock
) -> None:
    deployment = Deployment(instance, tmp_path / "calls", device_hours={"gpu_H100": 10}, transferred_gb=2)
    lab.ran("train/a", gpu("H100", 2), NOON, 3)
    assert deployment.tick() == "2026-01: gpu_H100: 6.0 of 10 device hours; transfers: 0.0 of 2 GB."
    assert webhook.texts == []
    lab.ran("train/b", gpu("H100"), NOON, 2.5)
    deployment.tick()
    [text] = webhook.texts
    assert text == (
        "*Budget 'lab': 85% of gpu_H100 spent*\n"
        "2026-01: gpu_H100: 8.5 of 10 device hours. The largest: train/a 6.0, train/b 2.5.\n"
        "<https://dagster.example.org/runs/r1>"
    )
    lab.ran("train/c", gpu("H100", 8), NOON + HOUR, 4)
    deployment.tick()
    assert webhook.texts[1].startswith("*Budget 'lab': 405% of gpu_H100 spent*\n")
    assert "The largest: train/c 32.0, train/a 6.0, train/b 2.5." in webhook.texts[1]
    for _ in range(3):
        deployment.tick()
    path = lab.begin("words", cpu(), NOON, moved_bytes=0)
    move(path, 3 * 10**9)
    assert "transfers: 3.0 of 2 GB" in deployment.tick()
    assert len(webhook.texts) == 3
    assert webhook.texts[2].startswith("*Budget 'lab': 150% of transfers spent*\n")
    assert not any(SECRET in text for text in webhook.texts)


def test_a_budget_in_dollars_counts_the_hours_whose_price_is_declared(
    lab: Lab, webhook: Webhook, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = Deployment(instance, tmp_path / "calls", dollars=100)
    lab.ran("train/a", gpu("H100", 2), NOON, 3)
    assert deployment.tick() == (
        "2026-01: dollars: 0.00 of 100. No price is declared for gpu_H100: without MARIN_DEVICE_PRICES, the dollars "
        "lack these hours."
    )
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "H100=3@2026-01-01,v4=2.5@2026-01-01")
    lab.ran("train/b", tpu("v4-16"), NOON, 4)
    assert deployment.tick().startswith("2026-01: dollars: 98.00 of 100.")
    [text] = webhook.texts
    assert text.startswith(
        "*Budget 'lab': 98% of dollars spent*\n2026-01: dollars: 98.00 of 100. The largest: train/b 80.0, train/a 18.0."
    )
    monkeypatch.setenv("MARIN_DEVICE_PRICES", "H100=3")
    assert deployment.tick().startswith("MARIN_DEVICE_PRICES has 'H100=3', expected device=dollars@day")


def test_the_next_period_begins_anew(
    lab: Lab, webhook: Webhook, instance: dg.DagsterInstance, tmp_path: Path, clock: Clock
) -> None:
    deployment = Deployment(instance, tmp_path / "calls", every="day", device_hours={"gpu_H100": 10})
    lab.ran("train/a", gpu("H100"), NOON, 24)
    clock.now = NOON + 11 * HOUR
    deployment.tick()
    assert len(webhook.texts) == 1
    clock.now = NOON + 13 * HOUR
    assert deployment.tick() == (
        "2026-02-01: gpu_H100: 1.0 of 10 device hours. The last new one: Budget 'lab': 110% of gpu_H100 spent, "
        "2026-01-31 23:00 UTC."
    )
    clock.now = NOON + 23 * HOUR
    deployment.tick()
    assert [text.splitlines()[0] for text in webhook.texts] == [
        "*Budget 'lab': 110% of gpu_H100 spent*",
        "*Budget 'lab': 110% of gpu_H100 spent*",
    ]


@pytest.mark.parametrize("disk_or_gcs_prefix", ["disk"], indirect=True)  # the time of an object cannot be set
def test_what_has_not_ended_counts(lab: Lab, webhook: Webhook, instance: dg.DagsterInstance, tmp_path: Path) -> None:
    deployment = Deployment(instance, tmp_path / "calls", device_hours={"tpu_v4_16": 1})
    path = lab.begin("train/a", tpu("v4-16"), NOON)
    lab.log(path, NOON + HOUR)
    assert deployment.tick().startswith("2026-01: tpu_v4_16: 8.0 of 1 device hours.")
    assert "The largest: train/a 8.0. Attempts under way: 1." in webhook.texts[0]


def test_a_webhook_that_is_down_is_tried_again_by_the_next_tick(
    lab: Lab, webhook: Webhook, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    deployment = Deployment(instance, tmp_path / "calls", device_hours={"gpu_H100": 1})
    lab.ran("train/a", gpu("H100"), NOON, 3)
    webhook.status = 503
    assert "answered 503" in deployment.tick()
    webhook.status = 200
    deployment.tick()
    assert len(webhook.texts) == 1


def test_a_pool_that_nobody_has_is_said(lab: Lab, instance: dg.DagsterInstance, tmp_path: Path) -> None:
    deployment = Deployment(instance, tmp_path / "calls", device_hours={"gpu_h100": 1})
    assert deployment.tick() == (
        "2026-01: gpu_h100: 0.0 of 1 device hours. No asset is in the pool 'gpu_h100': the pools are ['gpu_H100']."
    )


def test_a_store_that_cannot_be_read_is_a_sentence_and_the_cursor_stays(
    lab: Lab, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = Deployment(instance, tmp_path / "calls", device_hours={"gpu_H100": 1})
    deployment.tick()
    before = deployment.cursor
    monkeypatch.setenv("MARIN_PREFIX", "/proc/version/x" if lab.prefix.startswith("/") else "gs://no-such-bucket/x")
    assert deployment.tick()
    assert deployment.cursor is not None
    assert before is not None


def test_a_foreign_cursor_is_said_and_begins_anew(lab: Lab, instance: dg.DagsterInstance, tmp_path: Path) -> None:
    deployment = Deployment(instance, tmp_path / "calls", device_hours={"gpu_H100": 1})
    deployment.cursor = "[]"
    assert deployment.tick() == "2026-01: gpu_H100: 0.0 of 1 device hours."


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no limit": ({}, "The budget 'lab' has no limit. Give it device_hours="),
    "an empty one": ({"device_hours": {}}, "The budget 'lab' has no limit."),
    "zero": ({"device_hours": {"gpu": 0}}, r"has device_hours\['gpu'\]=0, expected a positive number"),
    "a text": ({"device_hours": {"gpu": "5"}}, r"has device_hours\['gpu'\]='5', expected a positive number"),
    "negative": ({"transferred_gb": -1}, "has transferred_gb=-1, expected a positive number"),
    "a share": ({"transferred_gb": 1, "tell_at": (0,)}, "has tell_at=0, expected a positive number"),
    "no share": ({"transferred_gb": 1, "tell_at": ()}, r"has tell_at=\(\), expected a list of shares"),
    "one share": ({"transferred_gb": 1, "tell_at": 0.8}, "has tell_at=0.8, expected a list of shares"),
    "a year": ({"transferred_gb": 1, "every": "year"}, "has every='year', expected 'day', 'week' or 'month'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_sentence(case: str) -> None:
    given, expected = WRONG[case]
    with pytest.raises(ValueError, match=expected):
        budget("lab", **given)


@pytest.mark.parametrize(
    ("every", "began"), [("day", (2026, 1, 31)), ("week", (2026, 1, 26)), ("month", (2026, 1, 1))], ids=str
)
def test_a_period_begins_at_midnight(every: Period, began: tuple[int, int, int]) -> None:
    assert start_of(every, NOON) == datetime(*began, tzinfo=UTC)
    assert start_of(every, start_of(every, NOON)) == start_of(every, NOON)

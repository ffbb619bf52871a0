from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import dagster as dg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_assets.step.partitions.products import product
from marin_assets.step.partitions.sets import Partitions, dynamic, static
from marin_assets.step.partitions.windows import Cadence, TimePartitions, daily, hourly, monthly, weekly
from marin_assets.step.values import ConfigError

DAGSTERS: dict[Cadence, Any] = {
    Cadence.HOURLY: dg.HourlyPartitionsDefinition,
    Cadence.DAILY: dg.DailyPartitionsDefinition,
    Cadence.WEEKLY: dg.WeeklyPartitionsDefinition,
    Cadence.MONTHLY: dg.MonthlyPartitionsDefinition,
}
moments = st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1))


@settings(deadline=None)
@given(st.sampled_from(Cadence), moments, st.integers(1, 60))
def test_keys_and_windows_are_those_of_dagster(cadence: Cadence, moment: datetime, count: int) -> None:
    start = cadence.floor(moment.replace(tzinfo=UTC))
    ours = TimePartitions(cadence, start)
    end = start
    for _ in range(count):
        end = cadence.next(end)
    theirs = DAGSTERS[cadence](start_date=ours.key_at(start))
    keys = list(ours.keys_between(start, end))
    assert keys == theirs.get_partition_keys(current_time=end)
    window = theirs.time_window_for_partition_key(keys[-1])
    assert ours.window(keys[-1]) == (window.start, window.end)


def test_a_key_for_each_pair_of_a_product_as_dagster_writes_it() -> None:
    ours = product(lang=static("en", "de"), day=static("1", "2"))
    theirs = dg.MultiPartitionsDefinition(
        {"lang": dg.StaticPartitionsDefinition(["en", "de"]), "day": dg.StaticPartitionsDefinition(["1", "2"])}
    )
    assert sorted(ours.fixed_keys or ()) == sorted(theirs.get_partition_keys())
    assert ours.split("1|en") == {"day": "1", "lang": "en"}


def test_the_start_of_a_set_may_be_a_text_or_a_date() -> None:
    assert daily("2026-01-01") == daily(date(2026, 1, 1)) == daily(datetime(2026, 1, 1, tzinfo=UTC))
    assert hourly("2026-01-01") == hourly("2026-01-01-00:00")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: static(), "static() has no key."),
        (lambda: static("en", "en"), "static() has the key 'en' 2 times."),
        (lambda: static("en", "EN"), "has the keys 'en' and 'EN', which are one folder"),
        (lambda: static(["en", "de"]), "The partition key ['en', 'de'] is not a name."),  # type: ignore[arg-type]
        (lambda: static(1), "The partition key 1 is not a name."),  # type: ignore[arg-type]
        (lambda: static("a...b"), "which Dagster refuses"),
        (lambda: static("a\nb"), "which Dagster refuses"),
        (lambda: dynamic("my deliveries"), "dynamic('my deliveries') is not a name."),
        (lambda: dynamic(""), "dynamic('') is not a name."),
        (lambda: daily("1.1.2026"), "daily('1.1.2026') is not a day."),
        (lambda: daily(2026), "daily(2026) is not a day."),  # type: ignore[arg-type]
        (lambda: weekly("2026-01-01"), "Its window starts at '2025-12-28'"),
        (lambda: monthly("2026-01-02"), "Its window starts at '2026-01-01'"),
        (lambda: daily(datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))), "is not in UTC"),
        (lambda: product(a=static("x")), "product() has 1 dimensions, expected two"),
        (lambda: product(a=static("x"), b=["y"]), "product() has b=['y'], expected static()"),  # type: ignore[arg-type]
        (lambda: product(a=static("x"), b=static("y|z")), "product() has the key 'y|z' in b"),
    ],
)
def test_a_set_that_cannot_be_is_refused(make: Callable[[], Partitions], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        make()
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("partitions", "key", "sentence"),
    [
        (static("english", "german"), "englsh", "Did you mean 'english'?"),
        (static("english", "german"), "xx", "expected one of 'english', 'german'."),
        (dynamic("deliveries"), "..", "is not a name"),
        (daily("2026-01-05"), "2026-01-04", "the first one is '2026-01-05'"),
        (daily("2026-01-05"), "2026-1-6", "Expected the start of a window of daily('2026-01-05')"),
        (daily("2026-01-05"), "2026-02-30", "Expected the start of a window"),
        (weekly("2026-01-04"), "2026-01-05", "Expected the start of a window"),
        (product(a=static("x"), b=static("y")), "x", "Expected the keys of a and b, joined with '|'"),
        (product(a=static("x"), b=static("y")), "x|z", "There is no partition 'z', expected 'y'."),
    ],
)
def test_a_key_that_a_set_does_not_have_is_refused(partitions: Partitions, key: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        partitions.require(key)
    assert sentence in str(refused.value)

"""What a function returns does not fail its step: what has no JSON form is left out with a warning."""

from __future__ import annotations

import enum
import json
import logging
from collections import namedtuple
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marin_resources.ray_tpu.worker.result import jsonable, keep_small


class Colour(enum.Enum):
    RED = 1


@dataclass(frozen=True, kw_only=True)
class Counts:
    documents: Any
    when: object = None


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (np.int64(5), 5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        ([np.array(7)], [7]),
        ([np.array([[1, 2], [3, 4]])], [[[1, 2], [3, 4]]]),
        ([np.array([0.5, np.nan])], [[0.5, None]]),
        (float("nan"), None),
        (np.float64("nan"), None),
        (float("-inf"), None),
        (Fraction(1, 2), 0.5),
        (Path("a/b"), "a/b"),
        (timedelta(seconds=5), [0, 5, 0]),
        (Colour.RED, "RED"),
        (Point(1, np.int8(2)), {"x": 1, "y": 2}),
        ((1, (2,)), [1, [2]]),
        (Counts(documents=np.int64(3)), {"documents": 3, "when": None}),
        ({1: "a", np.int64(2): "b", Colour.RED: "c"}, {"1": "a", "2": "b", "RED": "c"}),
        ({"$path": 1, "$x": 2}, {"$path": 1, "$x": 2}),
        ("\ud800", "\ud800"),
    ],
)
def test_a_value_is_written_as_json(value: Any, written: Any, caplog: pytest.LogCaptureFixture) -> None:
    found = jsonable({"value": value})
    assert found == {"value": written}
    assert type(found["value"]) is type(written)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert caplog.records == []


def endless() -> dict[str, Any]:
    itself: dict[str, Any] = {}
    itself["one"] = itself["two"] = [itself, itself]
    return itself


def odd_values() -> list[Any]:
    """Each in a list: pytest compares parameters, and an array is not compared."""
    values = (date(2026, 1, 1), np.datetime64("2026-01-01"), {1, 2}, b"x", object(), 1j, 10**5000, endless())
    return [pytest.param([value], id=type(value).__name__) for value in (*values, np.zeros(10**6))]


@pytest.mark.parametrize("odd", odd_values())
def test_a_value_without_json_is_left_out_and_the_others_are_kept(
    odd: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    [value] = odd
    with caplog.at_level(logging.WARNING):
        found = jsonable({"words": np.int64(5), "odd": value, "more": {"odd": value, "x": [value, 1]}})
    assert found["words"] == 5
    assert "odd" not in found
    assert found.get("more", {"x": [None, 1]}) == {"x": [None, 1]}
    [warning] = caplog.messages
    assert "result['odd'] " in warning
    assert warning.endswith("It is left out of the record. Return numbers, texts, lists and dicts with text keys.")
    assert len(warning) < 1000


@pytest.mark.parametrize("result", [5, np.int64(5), float("nan"), date(2026, 1, 1), "done", [1], Counts, {1}])
def test_what_is_no_dict_leaves_no_result(result: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert jsonable(result) == {}
    assert "expected a dict, a dataclass or None. The record has no result." in caplog.text


def test_a_thousand_odd_values_are_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert jsonable({"dates": [date(2026, 1, 1)] * 1000}) == {"dates": [None] * 1000}
    assert "; and 995 more. It is left out" in caplog.text


def test_the_largest_entries_of_a_large_result_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    result = {"words": 5, "text": "x" * 3_000_000, "half": "y" * 600_000, "other": "z" * 500_000}
    assert keep_small(result) == {"words": 5, "other": "z" * 500_000}
    assert [message.split(":")[0] for message in caplog.messages] == [
        "result['text'] has 3.0 MB, and a result has at most 1 MB",
        "result['half'] has 0.6 MB, and a result has at most 1 MB",
    ]

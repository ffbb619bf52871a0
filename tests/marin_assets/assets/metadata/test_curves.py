"""Curves on an asset's page."""

from __future__ import annotations

import base64
import math
import re

import pytest

from marin_assets.assets.metadata.curves import HEIGHT, POINTS, WIDTH, curves_of

IN_PLACE = 1000
"""Dagster shows shorter Markdown in place."""


def points_of(markdown: str) -> list[tuple[int, int]]:
    [data] = re.findall(r"base64,([^)]+)\)", markdown)
    [points] = re.findall(r'points="([^"]+)"', base64.b64decode(data).decode())
    return [(int(x), int(y)) for x, y in (point.split(",") for point in points.split())]


@pytest.mark.parametrize("length", [2, 39, 40, 41, 5000])
def test_a_curve_falls_as_its_numbers_do_and_fits_in_place(length: int) -> None:
    losses = [4 + 4 * math.exp(-i / length * 5) for i in range(length)]
    markdown = curves_of({"loss_curve": losses})["loss_curve"].value
    assert len(markdown) < IN_PLACE
    assert markdown.endswith(f" 8 → {losses[-1]:.4g}")
    points = points_of(markdown)
    assert len(points) == min(length, POINTS)
    assert [y for _, y in points] == sorted(y for _, y in points)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)


def test_equal_numbers_are_a_line_in_the_middle() -> None:
    assert {y for _, y in points_of(curves_of({"x": [1, 1, 1]})["x"].value)} == {HEIGHT // 2}


@pytest.mark.parametrize("value", [[], [1], ["a", "b"], [1, None], [1, math.nan], [True, False], 1, {"a": 1}])
def test_what_is_no_curve_is_not_drawn(value: object) -> None:
    assert curves_of({"x": value}) == {}

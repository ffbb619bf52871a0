"""The tries of a step on slices, drawn along the time."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from marin_assets.stages.report.timeline import LEFT, RIGHT, WIDTH, draw_tries


def tried(number: int, at: str, **parts: Any) -> dict[str, Any]:
    times = {"waited_s": 0.0, "startup_s": 0.0, "kept_s": 0.0, "lost_s": 0.0, "ran_s": 1.0, **parts}
    return {"attempt": 1, "number": number, "slices": ["a<b"], "started_at": f"2026-01-01T00:{at}+00:00", **times}


def bars(svg: str) -> list[tuple[str, float, float]]:
    """Class, begin and width of each bar that has a title; the legend has none."""
    root = ElementTree.fromstring(svg)
    found = [element for element in root.iter("rect") if element.find("title") is not None]
    return [(str(each.get("class")), float(str(each.get("x"))), float(str(each.get("width")))) for each in found]


def test_each_part_of_each_try_is_a_bar_in_its_place() -> None:
    first = tried(1, "00:10", waited_s=10.0, startup_s=20.0, kept_s=50.0, lost_s=20.0, cause="preempted")
    svg = draw_tries([first, tried(2, "01:50", waited_s=10.0, kept_s=10.0)])
    drawn = bars(svg)
    assert [name for name, _, _ in drawn] == ["waited_s", "startup_s", "kept_s", "lost_s", "waited_s", "kept_s"]
    pixels = (WIDTH - LEFT - RIGHT) / 120  # the axis ends at a round 120 s
    for (_, begin, width), (begin_s, width_s) in zip(
        drawn, [(0, 10), (10, 20), (30, 50), (80, 20), (100, 10), (110, 10)], strict=True
    ):
        assert begin == pytest.approx(LEFT + begin_s * pixels, abs=0.1)
        assert width == pytest.approx(width_s * pixels, abs=0.1)
    assert ">preempted</text>" in svg
    assert "120 s</text>" in svg
    assert "try 1.1 on a&lt;b: preempted; kept 50.0 s" in svg


def test_a_try_whose_end_is_not_known_says_so() -> None:
    svg = draw_tries([tried(1, "00:10", waited_s=10.0, ran_s=None), tried(2, "02:00", kept_s=60.0)])
    assert ">lost with its job, so its end is not known</text>" in svg
    assert [name for name, _, _ in bars(svg)] == ["waited_s", "kept_s"]


@pytest.mark.parametrize(("kept_s", "unit"), [(90.0, "s"), (3000.0, "min"), (90_000.0, "h")])
def test_the_unit_of_the_axis_fits(kept_s: float, unit: str) -> None:
    assert f" {unit}</text>" in draw_tries([tried(1, "00:00", kept_s=kept_s)])


def test_tries_that_took_no_time_are_drawn() -> None:
    assert bars(draw_tries([tried(1, "00:00")])) == []

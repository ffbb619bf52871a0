"""A curve of few points, for the page of an asset."""

from __future__ import annotations

import itertools
import statistics

CURVE_POINTS = 40


def curve_of(losses: list[float]) -> list[float]:
    """The means of CURVE_POINTS equal parts, or all losses if they are fewer."""
    parts = min(CURVE_POINTS, len(losses))
    edges = [round(i * len(losses) / parts) for i in range(parts + 1)] if parts else []
    return [round(statistics.fmean(losses[a:b]), 4) for a, b in itertools.pairwise(edges)]
